"""All benches, one after the other; a missed budget stops none of the others, and shows in the exit code."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

BENCHES = ("startup", "log", "connection", "lab", "submit", "sweep", "ps", "sweep_ps")


def main() -> int:
    chosen = sys.argv[1:] or BENCHES
    folder = Path(__file__).parent.parent
    codes = {
        name: subprocess.run([sys.executable, "-m", f"benchmarks.{name}"], cwd=folder, check=False).returncode
        for name in chosen
    }
    missed = [name for name, code in codes.items() if code]
    if missed:
        print(f"\nmissed a budget, or broke: {', '.join(missed)}", file=sys.stderr)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
