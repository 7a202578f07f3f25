"""Start-up cost of yurt in instructions, relative to `python -c pass`."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.figures import Figure, table
from benchmarks.instructions import instructions
from benchmarks.side_by_side import project

YURT = str(Path(sys.executable).parent / "yurt")
ROWS = {
    "python -c pass": [sys.executable, "-c", "pass"],
    "python -c 'import yurt'": [sys.executable, "-c", "import yurt"],
    "python -c 'import click'": [sys.executable, "-c", "import click"],
    "yurt --version": [sys.executable, YURT, "--version"],
    "yurt --help": [sys.executable, YURT, "--help"],
    "yurt lab --help": [sys.executable, YURT, "lab", "--help"],
    "yurt lab status --json": [sys.executable, YURT, "lab", "status", "--json", "--instance", "none-such"],
}
BUDGETS = {
    "python -c 'import yurt'": 2.0,
    "yurt --version": 5.0,
    "yurt --help": 6.0,
    "yurt ps --cached": 4.5,
    "yurt run --dry-run": 8.0,
}


def frequent() -> dict[str, int]:
    """Return the instructions of frequent verbs, in a project with one finished run."""
    with tempfile.TemporaryDirectory(prefix="yb-") as home:
        source = project(Path(home) / "project", files=5)
        (source / "train.py").write_text("print(1)\n")
        environment = {**os.environ, "YURT_DATA_HOME": f"{home}/data", "YURT_CONFIG_HOME": f"{home}/config"}
        run = [sys.executable, YURT, "run", "--wait", "train.py"]
        subprocess.run(run, cwd=source, env=environment, capture_output=True, check=True)
        rows = {
            "yurt ps --cached": ["ps", "--cached"],
            "yurt run --dry-run": ["run", "--dry-run", "train.py"],
            "yurt show --cached": ["show", "--cached", "@last"],
            "yurt logs": ["logs", "@last"],
            "yurt wait": ["wait", "@last"],
        }
        with contextlib.chdir(source):
            return {name: instructions([sys.executable, YURT, *words], environment) for name, words in rows.items()}


def main() -> int:
    counts = {name: instructions(argv) for name, argv in ROWS.items()} | frequent()
    bare = counts["python -c pass"]
    figures = [Figure(name, count / bare, BUDGETS.get(name)) for name, count in counts.items()]
    return table("start-up, instructions", figures, "x python")


if __name__ == "__main__":
    sys.exit(main())
