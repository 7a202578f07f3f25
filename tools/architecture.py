"""Draws docs/pictures/architecture.svg: the packages by import-linter's layers. `--check` only compares."""

from __future__ import annotations

import ast
import sys
import tomllib
from html import escape
from pathlib import Path
from textwrap import wrap

ROOT = Path(__file__).parent.parent
TARGET = ROOT / "docs" / "pictures" / "architecture.svg"
SOURCE = ROOT / "src"

WIDTH, GAP, HEIGHT = 940, 12, 66
BESIDE = ("yurt.testing", "yurt.lab", "yurt.node")
"""Packages drawn below the stack: testing, the lab, and the code that runs inside jobs."""


def layers() -> list[list[str]]:
    """Return the packages of each layer, from the top."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    found = settings["tool"]["importlinter"]["contracts"][0]["layers"]
    return [[name.strip() for name in line.split("|")] for line in found]


def about(package: str) -> str:
    """Return the first sentence of a package's docstring."""
    path = SOURCE / package.replace(".", "/")
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    text = ast.get_docstring(ast.parse(file.read_text())) or ""
    return text.partition("\n")[0].partition(". ")[0].rstrip(".:").replace("`", "")


def subpackages(package: str) -> str:
    """Return the names of the packages inside a package."""
    path = SOURCE / package.replace(".", "/")
    folders = sorted(each.name for each in path.iterdir() if (each / "__init__.py").exists()) if path.is_dir() else []
    return "/  ".join(folders) + "/" if folders else ""


def picture() -> str:
    rows = [[package for package in row if package not in BESIDE] for row in layers()]
    rows = [row for row in rows if row]
    below = [package for row in layers() for package in row if package in BESIDE]
    total = (len(rows) + 1) * (HEIGHT + GAP) + 40
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {total}" font-family="sans-serif">',
        "<style>rect{fill:#f4f1ea;stroke:#8a7f6a}.beside rect{fill:#eef3f6;stroke:#6a8294}"
        "text{fill:#222}.name{font-weight:bold;font-size:15px}.about{font-size:11px;fill:#444}</style>",
        f'<text x="{GAP}" y="22" class="about">A package imports only packages below it. Packages in one row do not '
        "import each other.</text>",
    ]
    at = 34
    for row in rows:
        parts += draw_row(row, at)
        at += HEIGHT + GAP
    parts.append(f'<g class="beside">{"".join(draw_row(below, at))}</g>')
    return "\n".join([*parts, "</svg>", ""])


def draw_row(row: list[str], at: int) -> list[str]:
    width = (WIDTH - GAP) // len(row) - GAP
    parts = []
    for number, package in enumerate(row):
        x = GAP + number * (width + GAP)
        parts.append(f'<rect x="{x}" y="{at}" width="{width}" height="{HEIGHT}" rx="5"/>')
        parts.append(f'<text x="{x + 10}" y="{at + 22}" class="name">{escape(package.removeprefix("yurt."))}</text>')
        lines = wrap(about(package), width // 6)[:2]
        if len(lines) == 1 and subpackages(package):
            lines.append(subpackages(package))
        for line, text in enumerate(lines):
            parts.append(f'<text x="{x + 10}" y="{at + 40 + 15 * line}" class="about">{escape(text)}</text>')
    return parts


def main() -> int:
    text = picture()
    if "--check" in sys.argv:
        return int(not TARGET.exists() or TARGET.read_text() != text)
    TARGET.write_text(text)
    print(f"docs: wrote {TARGET.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
