"""`make bench`: runs the benchmarks one after the other. Exits with 1 if one fails or exceeds a budget."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

BENCHMARKS = (
    "startup",
    "log",
    "connection",
    "latency",
    "lab",
    "submit",
    "sweep",
    "ps",
    "sweep_ps",
    "reads",
    "cluster",
    "env",
    "env_place",
    "backup",
    "home",
    "agent",
    "race",
    "watch",
    "serve",
    "dev_ssh",
    "data",
    "fetch",
    "sampler",
    "calls",
    "local_run",
    "many_runs",
    "growth",
)


def main() -> int:
    chosen = sys.argv[1:] or BENCHMARKS
    folder = Path(__file__).parent.parent
    codes = {
        name: subprocess.run([sys.executable, "-m", f"benchmarks.{name}"], cwd=folder, check=False).returncode
        for name in chosen
    }
    failed = [name for name, code in codes.items() if code]
    if failed:
        print(f"\nfailed, or over budget: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
