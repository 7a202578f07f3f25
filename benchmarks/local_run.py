"""Cost of a run on this machine: `yurt run --wait true` in a small git project, and the programs that it executes."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from benchmarks import executions
from benchmarks.figures import Figure, table
from benchmarks.side_by_side import YURT, Bench, median, project

TURNS = 21
RATIO, PROGRAMS = 12, 15


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="yb-") as folder:
        bench = Bench(Path(folder))
        place = project(bench.home / "project", files=20, size=1000)
        wait, bare = [YURT, "run", "--wait", "true"], [sys.executable, "-c", "pass"]
        rows = {"run --wait true": wait, "  run --dry-run true": [*wait[:2], "--dry-run", "true"]}
        times: dict[str, list[float]] = {name: [] for name in ("", *rows)}
        bench.call(wait, folder=place)
        for _turn in range(TURNS):
            for name, argv in {"": bare, **rows}.items():
                times[name].append(bench.seconds(argv, folder=place))
        unit = median(times.pop(""))
        figures = [
            Figure(name, median(each) / unit, RATIO if rows[name] == wait else None) for name, each in times.items()
        ]
        code = table("a run on this machine", figures, "x python")
        if not executions.available():
            print("local_run: programs are not counted; strace is missing, or cannot trace processes here")
            return code
        counts = {
            "run --wait true": len(executions.executions(wait, bench.environment, place)),
            "  run --wait false": len(executions.executions([*wait[:3], "false"], bench.environment, place, code=1)),
            "  run --wait sleep 1": len(executions.executions([*wait[:3], "sleep", "1"], bench.environment, place)),
        }
        found = [Figure(name, count, PROGRAMS if name in rows else None) for name, count in counts.items()]
        return table("programs executed by a run on this machine", found, "programs") or code


if __name__ == "__main__":
    sys.exit(main())
