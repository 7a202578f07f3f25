"""Draws docs/pictures/architecture.svg: the rooms by layer, as import-linter has them. `--check` only compares."""

from __future__ import annotations

import ast
import sys
import tomllib
from html import escape
from pathlib import Path

ROOT = Path(__file__).parent.parent
TARGET = ROOT / "docs" / "pictures" / "architecture.svg"
SOURCE = ROOT / "src"

WIDTH, GAP, HEIGHT = 940, 12, 66
BESIDE = ("yurt.testing", "yurt.lab", "yurt.node")
"""Beside the stack: what builds on it, and what runs inside jobs."""


def layers() -> list[list[str]]:
    """The rooms of each layer, from the top."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    found = settings["tool"]["importlinter"]["contracts"][0]["layers"]
    return [[name.strip() for name in line.split("|")] for line in found]


def about(room: str) -> str:
    """The first sentence of a room's docstring."""
    place = SOURCE / room.replace(".", "/")
    file = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
    text = ast.get_docstring(ast.parse(file.read_text())) or ""
    return text.partition("\n")[0].partition(". ")[0].rstrip(".:").replace("`", "")


def inner(room: str) -> str:
    """The rooms inside a room."""
    place = SOURCE / room.replace(".", "/")
    folders = sorted(each.name for each in place.iterdir() if (each / "__init__.py").exists()) if place.is_dir() else []
    return "/  ".join(folders) + "/" if folders else ""


def picture() -> str:
    rows = [[room for room in row if room not in BESIDE] for row in layers()]
    rows = [row for row in rows if row]
    below = [room for row in layers() for room in row if room in BESIDE]
    total = (len(rows) + 1) * (HEIGHT + GAP) + 40
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {total}" font-family="sans-serif">',
        "<style>rect{fill:#f4f1ea;stroke:#8a7f6a}.beside rect{fill:#eef3f6;stroke:#6a8294}"
        "text{fill:#222}.name{font-weight:bold;font-size:15px}.about{font-size:11px;fill:#444}</style>",
        f'<text x="{GAP}" y="22" class="about">A room imports only rooms below it; rooms side by side do not import '
        "each other.</text>",
    ]
    at = 34
    for row in rows:
        parts += drawn(row, at)
        at += HEIGHT + GAP
    parts.append(f'<g class="beside">{"".join(drawn(below, at))}</g>')
    return "\n".join([*parts, "</svg>", ""])


def drawn(row: list[str], at: int) -> list[str]:
    room_width = (WIDTH - GAP) // len(row) - GAP
    found = []
    for number, room in enumerate(row):
        x = GAP + number * (room_width + GAP)
        found.append(f'<rect x="{x}" y="{at}" width="{room_width}" height="{HEIGHT}" rx="5"/>')
        found.append(f'<text x="{x + 10}" y="{at + 22}" class="name">{escape(room.removeprefix("yurt."))}</text>')
        lines = wrapped(about(room), room_width // 6)[:2]
        if len(lines) == 1 and inner(room):
            lines.append(inner(room))
        for line, text in enumerate(lines):
            found.append(f'<text x="{x + 10}" y="{at + 40 + 15 * line}" class="about">{escape(text)}</text>')
    return found


def wrapped(text: str, columns: int) -> list[str]:
    from textwrap import wrap

    return wrap(text, columns)


def main() -> int:
    text = picture()
    if "--check" in sys.argv:
        return int(not TARGET.exists() or TARGET.read_text() != text)
    TARGET.write_text(text)
    print(f"docs: wrote {TARGET.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
