"""Draw the terminal pictures of the docs: run real commands in a real terminal and write their output as SVG."""

from __future__ import annotations

import html
import io
import os
import re
import shutil
import sys
import tempfile
from pathlib import Path

import pexpect
from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "docs" / "pictures"
WIDTH = 92
CHARACTER = 12.2
"""Width of a character in rich's SVG."""
SESSIONS = {
    "lab": ("digits", ("yurt lab up", "yurt lab shell alpha -- srun -N3 -l hostname", "yurt lab status")),
    "runs": (
        "digits",
        (
            "yurt run --context alpha --gpus a100:1 --time 10m -f train.py -- --lr 0.1",
            "yurt run --context beta --name slow train.py -- --lr 0.01",
            "yurt run train.py -- --lr 0.5",
            "yurt ps",
        ),
    ),
    "sweep": (
        "sweep",
        (
            "yurt run --context alpha --grid lr=0.02..0.2..0.02 --grid seed=1..3 --wait train.py",
            "yurt ps --limit 1",
            "yurt show @last-sweep --plot loss --over lr",
        ),
    ),
    "cluster": (
        "digits",
        (
            "yurt run --context alpha --cpus 8 --gpus 1 --grid s=8..13 sleep {s}",
            "yurt cluster alpha local",
        ),
    ),
    "where": (
        "digits",
        (
            "yurt run --context alpha --cpus 8 --time 3h --grid s=20..22 sleep {s}",
            "yurt where --context alpha,beta --cpus 4 --time 12h",
            "yurt run --context best --cpus 4 --time 12h train.py -- --lr 0.1",
        ),
    ),
    "why-pending": (
        "digits",
        (
            "yurt run --context alpha --nodelist n1 --cpus 8 --time 20m --name first sleep 40",
            "yurt run --context alpha --nodelist n1 --cpus 8 --time 10m --name second true",
            "sleep 4",
            "yurt why second",
        ),
    ),
    "why-failed": (
        "digits",
        (
            "yurt run --context alpha --name typo --mem 500M python3 -c 'import nunpy'",
            "yurt wait typo --timeout 1m",
            "yurt ps --limit 1",
            "yurt why typo",
        ),
    ),
    "doctor": (
        "digits",
        (
            "yurt doctor alpha beta",
            "yurt lab fault cut alpha",
            "yurt doctor alpha",
            "yurt lab fault heal alpha",
        ),
    ),
    "fault": (
        "digits",
        (
            "yurt lab fault cut alpha",
            "yurt run --context alpha train.py -- --lr 0.1",
            "yurt ps --limit 1",
            "yurt lab fault heal alpha",
            "yurt wait -",
            "yurt ps --limit 1",
        ),
    ),
}
"""The example project and the commands of each picture. All pictures share one lab."""

THEME = TerminalTheme(
    (24, 26, 31),
    (212, 215, 221),
    [
        *((60, 64, 72), (224, 108, 117), (152, 195, 121), (229, 192, 123)),
        *((97, 175, 239), (198, 120, 221), (86, 182, 194), (212, 215, 221)),
    ],
)

# The file is self-contained: it loads no fonts.
FRAME = """\
<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font-family: ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace;
  font-size: {char_height}px; line-height: {line_height}px; }}
.{unique_id}-title {{ font: bold 18px sans-serif; }}
{styles}
</style>
<defs><clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}" /></clipPath>{lines}</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">{matrix}</g>
</g>
</svg>
"""


def shown(command: str, folder: Path, environment: dict[str, str]) -> str:
    """Return what the terminal shows after a command, without its progress bar."""
    output, code = pexpect.run(
        command,
        cwd=str(folder),
        env=environment,
        encoding="utf8",
        dimensions=(40, WIDTH),
        timeout=120,
        withexitstatus=True,
    )
    if code and not command.startswith(("yurt doctor", "yurt wait")):  # 1 if there is a fault, or if a run failed
        sys.exit(f"picture: {command}: {output}")
    lines = [line.rpartition("\033[2K")[2] for line in str(output).replace("\r", "").split("\n")]
    kept = (line for line in lines if "\033[?25" not in line and not PROGRESS.search(COLOUR.sub("", line)))
    return "\n".join(kept).strip("\n")


PROGRESS = re.compile(r"━ \d:\d\d:\d\d ")
COLOUR = re.compile("\033\\[[\\d;]*m")
TEXT = re.compile(r'<text class="([^"]+)" x="([\d.]+)" y="([\d.]+)" textLength="[\d.]+"([^>]*)>([^<]*)</text>')


def aligned(svg: str) -> str:
    """Place each word group at its own column: some viewers drop leading spaces and ignore `textLength`."""

    def place(found: re.Match[str]) -> str:
        style, x, y, rest, text = found.groups()
        texts = []
        for words in re.finditer(r"\S+(?: \S+)*", html.unescape(text).replace("\xa0", " ")):
            left, width = float(x) + words.start() * CHARACTER, len(words[0]) * CHARACTER
            content = html.escape(words[0]).replace(" ", "&#160;")
            place = f'x="{left:.1f}" y="{y}" textLength="{width:.1f}"'
            texts.append(f'<text class="{style}" {place}{rest}>{content}</text>')
        return "".join(texts)

    return TEXT.sub(place, svg)


def draw(name: str, folder: Path, environment: dict[str, str]) -> None:
    """Run the commands of a session and write the picture."""
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True)
    for command in SESSIONS[name][1]:
        console.print(Text.assemble(("$ ", "green"), (command, "bold")))
        if output := shown(command, folder, environment):
            console.print(Text.from_ansi(output))
        console.print()
    target = FOLDER / f"{name}.svg"
    target.parent.mkdir(parents=True, exist_ok=True)
    svg = console.export_svg(title=f"yurt: {name}", theme=THEME, code_format=FRAME, unique_id=f"yurt-{name}")
    target.write_text(aligned(svg))
    print(f"docs: drew {target.name}")


def main() -> int:
    if os.geteuid() != 0:
        print("docs: left the terminal pictures unchanged: they need the lab, and the lab needs root")
        return 0
    home = Path(tempfile.mkdtemp())
    environment = {name: value for name, value in os.environ.items() if not name.startswith("YURT_")}
    environment |= {"HOME": str(home), "TERM": "xterm-256color", "COLUMNS": str(WIDTH)}
    environment["PATH"] = f"{Path(sys.executable).parent}:{environment['PATH']}"
    for name in ("NO_COLOR", "SUDO_UID"):
        environment.pop(name, None)
    try:
        for name, (project, _commands) in SESSIONS.items():
            folder = home / project
            shutil.copytree(ROOT / "examples" / project, folder, dirs_exist_ok=True)
            draw(name, folder, environment)
            pexpect.run("yurt wait @last", cwd=str(folder), env=environment, timeout=60)
    finally:
        pexpect.run("yurt lab down --wipe", env=environment, timeout=60)
        shutil.rmtree(home)
    return 0


if __name__ == "__main__":
    sys.exit(main())
