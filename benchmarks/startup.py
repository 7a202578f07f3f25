"""Start-up cost of yurt in instructions, relative to `python -c pass`."""

from __future__ import annotations

import sys
from pathlib import Path

from benchmarks.figures import Figure, table
from benchmarks.instructions import instructions

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
BUDGETS = {"python -c 'import yurt'": 2.0, "yurt --version": 5.0, "yurt --help": 6.0}


def main() -> int:
    counts = {name: instructions(argv) for name, argv in ROWS.items()}
    bare = counts["python -c pass"]
    figures = [Figure(name, count / bare, BUDGETS.get(name)) for name, count in counts.items()]
    return table("start-up, instructions", figures, "x python")


if __name__ == "__main__":
    sys.exit(main())
