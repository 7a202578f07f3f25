"""Draws the README's pictures: real commands run in a real terminal, their output as SVG."""

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

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "docs" / "pictures"
WIDTH = 92
SESSIONS = {
    "lab": ("yurt lab up", "yurt lab shell alpha -- srun -N3 -l hostname", "yurt lab status"),
    "runs": (
        "yurt run --context alpha --gpus a100:1 --time 10m -f train.py -- --lr 0.1",
        "yurt run --context beta --name slow train.py -- --lr 0.01",
        "yurt run train.py -- --lr 0.5",
        "yurt ps",
    ),
}
"""What is typed in each picture, one after the other in the same lab."""

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


def shown(command: str, folder: Path, environment: dict[str, str]) -> str:
    """What a terminal still shows of a command when its progress bar has come and gone."""
    output, code = pexpect.run(
        command,
        cwd=str(folder),
        env=environment,
        encoding="utf8",
        dimensions=(40, WIDTH),
        timeout=120,
        withexitstatus=True,
    )
    if code:
        sys.exit(f"picture: {command}: {output}")
    lines = [line.rpartition("\033[2K")[2] for line in str(output).replace("\r", "").split("\n")]
    return "\n".join(line for line in lines if "━" not in line and "\033[?25" not in line).strip("\n")


def draw(name: str, folder: Path, environment: dict[str, str]) -> None:
    """Type a session and write it as a picture."""
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True)
    for command in SESSIONS[name]:
        console.print(Text.assemble(("$ ", "green"), (command, "bold")))
        if output := shown(command, folder, environment):
            console.print(Text.from_ansi(output))
        console.print()
    target = FOLDER / f"{name}.svg"
    target.parent.mkdir(parents=True, exist_ok=True)
    title = "yurt lab" if name == "lab" else "yurt"
    target.write_text(console.export_svg(title=title, theme=THEME, code_format=FRAME, unique_id=f"yurt-{name}"))
    print(f"docs: drew {target.name}")


def main() -> int:
    if os.geteuid() != 0:
        print("docs: the pictures need the lab, and the lab needs root; the old ones stay")
        return 0
    home = Path(tempfile.mkdtemp())
    environment = {name: value for name, value in os.environ.items() if not name.startswith("YURT_")}
    environment |= {"HOME": str(home), "TERM": "xterm-256color", "COLUMNS": str(WIDTH)}
    environment["PATH"] = f"{Path(sys.executable).parent}:{environment['PATH']}"
    for name in ("NO_COLOR", "SUDO_UID"):
        environment.pop(name, None)
    project = home / "digits"
    shutil.copytree(ROOT / "examples" / "digits", project)
    try:
        for name in SESSIONS:
            draw(name, project, environment)
        pexpect.run("yurt wait -", cwd=str(project), env=environment, timeout=60)
    finally:
        pexpect.run("yurt lab down --wipe", env=environment, timeout=60)
        shutil.rmtree(home)
    return 0


if __name__ == "__main__":
    sys.exit(main())
