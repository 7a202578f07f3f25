"""Draws the README's picture: real commands run in a real terminal, their output as SVG."""

from __future__ import annotations

import io
import os
import shutil
import sys
import tempfile
from pathlib import Path

import pexpect
from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

TARGET = Path(__file__).parent.parent / "docs" / "pictures" / "lab.svg"
WIDTH = 92
COMMANDS = ("yurt lab up", "yurt lab shell alpha -- srun -N3 -l hostname", "yurt lab status")

THEME = TerminalTheme(
    (24, 26, 31),
    (212, 215, 221),
    [
        *((60, 64, 72), (224, 108, 117), (152, 195, 121), (229, 192, 123)),
        *((97, 175, 239), (198, 120, 221), (86, 182, 194), (212, 215, 221)),
    ],
)

# One file that needs nothing from elsewhere: no fonts are fetched.
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


def shown(command: str, environment: dict[str, str]) -> str:
    """What a terminal still shows of a command when its progress bar has come and gone."""
    output, code = pexpect.run(
        command, env=environment, encoding="utf8", dimensions=(40, WIDTH), timeout=120, withexitstatus=True
    )
    if code:
        sys.exit(f"picture: {command}: {output}")
    lines = [line.rpartition("\033[2K")[2] for line in str(output).replace("\r", "").split("\n")]
    return "\n".join(line for line in lines if "━" not in line and "\033[?25" not in line).strip("\n")


def main() -> int:
    if os.geteuid() != 0:
        print("docs: the picture needs the lab, and the lab needs root; the old one stays")
        return 0
    home = tempfile.mkdtemp()
    environment = {**os.environ, "HOME": home, "TERM": "xterm-256color", "COLUMNS": str(WIDTH)}
    environment["PATH"] = f"{Path(sys.executable).parent}:{environment['PATH']}"
    for name in ("YURT_DATA_HOME", "YURT_CONFIG_HOME", "YURT_LAB", "NO_COLOR", "SUDO_UID"):
        environment.pop(name, None)
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True)
    try:
        for command in COMMANDS:
            console.print(Text.assemble(("$ ", "green"), (command, "bold")))
            console.print(Text.from_ansi(shown(command, environment)))
            console.print()
    finally:
        pexpect.run("yurt lab down --wipe", env=environment, timeout=60)
        shutil.rmtree(home)
    TARGET.parent.mkdir(parents=True, exist_ok=True)
    TARGET.write_text(console.export_svg(title="yurt lab", theme=THEME, code_format=FRAME, unique_id="yurt"))
    print(f"docs: drew {TARGET.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
