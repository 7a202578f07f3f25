"""Runs every static check; all of them, so that one run shows all there is to mend."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

BIN = Path(sys.executable).parent
CHECKS = (
    ("ruff", "check", "--quiet", "."),
    ("ruff", "format", "--check", "--quiet", "."),
    ("mypy",),
    ("lint-imports", "--no-logo"),
)


def main() -> int:
    failed = False
    for program, *arguments in CHECKS:
        done = subprocess.run([str(BIN / program), *arguments], capture_output=True, text=True, check=False)
        print(f"lint: {program} {' '.join(arguments)}: {'ok' if done.returncode == 0 else 'FAILED'}", flush=True)
        if done.returncode:
            failed = True
            print(done.stdout + done.stderr)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
