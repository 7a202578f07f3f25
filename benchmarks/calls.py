"""Function calls on this machine, in turns with a ProcessPoolExecutor; the memory and the cost of many results."""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import Executor, ProcessPoolExecutor
from pathlib import Path

from benchmarks.figures import Figure, table

CALLS, ROUNDS = 200, 7
RATIO = 20.0

FEW, MANY = 1_000, 10_000
MIB, GROWTH = 200, 1.2


def same(x: int) -> int:
    return x


def seconds(start: Callable[[], Executor]) -> float:
    began = time.perf_counter()
    with start() as executor:
        assert list(executor.map(same, range(CALLS))) == list(range(CALLS))
    return time.perf_counter() - began


def in_turns() -> None:
    """Print the median ratio of both executors, each measured in turns after a first use."""
    import yurt

    def ours() -> Executor:
        return yurt.executor("local")

    seconds(ours)
    seconds(ProcessPoolExecutor)
    pairs = [(seconds(ours), seconds(ProcessPoolExecutor)) for _each in range(ROUNDS)]
    mine, theirs = (statistics.median(each) for each in zip(*pairs, strict=True))
    print(mine / theirs, mine, theirs)


def many(count: int) -> None:
    """Print the most memory of a client that makes many calls, in MiB, and its CPU milliseconds per result."""
    import yurt

    with yurt.executor("local") as executor:
        before = time.process_time()
        assert sum(executor.map(same, range(count))) == count * (count - 1) // 2
        spent = time.process_time() - before
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1000 * spent / count)


def measured(*arguments: str) -> list[float]:
    """Return what a process of its own prints, in a project with one file."""
    with tempfile.TemporaryDirectory(prefix="yb-") as home:
        project = Path(home, "project")
        project.mkdir()
        (project / "train.py").write_text("print('hello')\n")
        own = {name: f"{home}/{name}" for name in ("YURT_CONFIG_HOME", "YURT_DATA_HOME", "YURT_RUNTIME_DIR")}
        path = str(Path(__file__).parent.parent)
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.calls", *arguments],
            cwd=project,
            env={**os.environ, **own, "PYTHONPATH": path},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(done.stderr[-2000:])
        return [float(word) for word in done.stdout.split()]


def main() -> int:
    ratio, mine, theirs = measured("turns")
    _memory, few = measured("many", str(FEW))
    memory, each = measured("many", str(MANY))
    figures = [
        Figure(f"{CALLS} calls, times a ProcessPoolExecutor", ratio, RATIO),
        Figure("  seconds", mine),
        Figure("  seconds of the ProcessPoolExecutor", theirs),
        Figure(f"{MANY:,} results: memory of the client, MiB", memory, MIB),
        Figure(f"  CPU per result, times that of {FEW:,}", each / few, GROWTH),
        Figure("  CPU per result, ms", each),
    ]
    return table("calls on this machine", figures)


if __name__ == "__main__":
    if sys.argv[1:2] == ["turns"]:
        in_turns()
    elif sys.argv[1:2] == ["many"]:
        many(int(sys.argv[2]))
    else:
        sys.exit(main())
