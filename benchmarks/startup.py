"""What starting yurt costs, in instructions, beside `python -c pass` in the same run."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))
from benchmarks.instructions import instructions

YURT = str(Path(sys.executable).parent / "yurt")
ROWS = {
    "python -c pass": [sys.executable, "-c", "pass"],
    "python -c 'import click'": [sys.executable, "-c", "import click"],
    "yurt --version": [sys.executable, YURT, "--version"],
    "yurt --help": [sys.executable, YURT, "--help"],
    "yurt lab --help": [sys.executable, YURT, "lab", "--help"],
    "yurt lab status --json": [sys.executable, YURT, "lab", "status", "--json", "--instance", "none-such"],
}


def main() -> None:
    print(f"{'start-up':26} {'M instructions':>14} {'ratio':>6}")
    bare = 0
    for name, argv in ROWS.items():
        count = instructions(argv)
        bare = bare or count
        print(f"{name:26} {count / 1e6:14.1f} {count / bare:6.2f}")


if __name__ == "__main__":
    main()
