"""Time of a yurt.log call, compared with os.write of the same line in the same process."""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

CALLS, TURNS = 20_000, 11
NAN = float("nan")
BUDGET = 20
"""Microseconds per call."""


def microseconds(action: Callable[[int], object]) -> float:
    started = time.perf_counter()
    for step in range(CALLS):
        action(step)
    return (time.perf_counter() - started) / CALLS * 1e6


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        os.environ["YURT_RUN_DIR"] = folder
        import yurt

        yurt.log(step=10_000, loss=0.5123, accuracy=0.25)
        with Path(folder, "metrics.jsonl").open("rb") as metrics:
            line = metrics.read()
        file = os.open(f"{folder}/bare", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        rows: dict[str, list[float]] = {"os.write": [], "yurt.log": [], "yurt.log, NaN": []}
        for _turn in range(TURNS):
            rows["os.write"].append(microseconds(lambda _step: os.write(file, line)))
            rows["yurt.log"].append(microseconds(lambda step: yurt.log(step=step, loss=0.5123, accuracy=0.25)))
            rows["yurt.log, NaN"].append(microseconds(lambda step: yurt.log(step=step, loss=NAN)))
        os.close(file)
    bare = statistics.median(rows["os.write"])
    print(f"\n{'one line of metrics':26} {'microseconds':>12} {'ratio':>6} {'budget':>7}")
    for name, times in rows.items():
        budget = f"{BUDGET} us" if name == "yurt.log" else ""
        print(f"{name:26} {statistics.median(times):12.2f} {statistics.median(times) / bare:6.1f} {budget:>7}".rstrip())
    return int(statistics.median(rows["yurt.log"]) > BUDGET)


if __name__ == "__main__":
    sys.exit(main())
