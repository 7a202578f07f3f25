"""How long new bytes of event files take to come, next to reading as many bytes by one ssh over an open connection.

40 runs on alpha have 500 MB of event files; 1 MB is new in each round. Both are timed in turns in one process. Then
200 runs that write nothing are followed, and the requests to the login node are counted.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path

from benchmarks.figures import Figure, table
from benchmarks.side_by_side import Bench, alpha

RUNS, EACH, NEW = 40, 12_500_000, 25_000
"""Runs, the bytes that each of them has, and how many are new in each round."""

IDLE, INTERVALS = 200, 6
ROUNDS = 15
BASE = "/lustre/scratch/alice/yurt/projects/bench-aaaa/runs"

MAKE = f"""\
umask 077
mkdir -p {BASE}
for n in $(seq {RUNS + IDLE}); do
  mkdir -p {BASE}/1nfaaa0-b$n/work/runs/x
  echo begun > {BASE}/1nfaaa0-b$n/work/runs/x/events.out.tfevents.1.node
done
for n in $(seq {RUNS}); do head -c {EACH} /dev/urandom >> {BASE}/1nfaaa0-b$n/work/runs/x/*tfevents*; done
"""

ADD = f"for n in $(seq {RUNS}); do head -c {NEW} /dev/urandom >> {BASE}/1nfaaa0-b$n/work/runs/x/*tfevents*; done"

READ = f"for n in $(seq {RUNS}); do tail -c {NEW} {BASE}/1nfaaa0-b$n/work/runs/x/*tfevents*; done"
"""What a user would type to read the new bytes."""


def measure(bench: Bench) -> tuple[float, float, float]:
    """Return the seconds of one request, of the same bytes by ssh, and the requests per interval for idle runs."""
    os.environ.update(bench.environment)
    from yurt.contexts import connect, fan_out
    from yurt.tracking import follow
    from yurt.tracking.follow import Unit
    from yurt.transport import counts

    fan_out.ready()
    files = connect.named_backend("alpha").files
    units = [Unit(run=f"b{n}", context="alpha", folder=f"{BASE}/1nfaaa0-b{n}") for n in range(1, RUNS + IDLE + 1)]
    busy, idle = units[:RUNS], units[RUNS:]
    on_alpha = [*bench.ssh, "-o", f"ControlPath={bench.home}/c", "alpha"]
    opened = subprocess.Popen([*on_alpha[:-1], "-M", "-N", "alpha"], stdin=subprocess.DEVNULL)
    try:
        subprocess.run([*on_alpha, MAKE], check=True, capture_output=True)
        follow.look(files, "alpha", units, ["events"], deep=True)
        ours, theirs = [], []
        for number in range(ROUNDS):
            subprocess.run([*on_alpha, ADD], check=True, capture_output=True)
            began = time.perf_counter()
            came = follow.look(files, "alpha", busy, ["events"], deep=number % follow.DEEP == 0)
            ours.append(time.perf_counter() - began)
            assert len(came.changed) == RUNS
            began = time.perf_counter()
            read = subprocess.run([*on_alpha, READ], check=True, capture_output=True).stdout
            theirs.append(time.perf_counter() - began)
            assert len(read) >= RUNS * NEW
        before = counts.commands().get("alpha", 0)
        pause = threading.Event()
        for number in range(INTERVALS):
            assert not follow.look(files, "alpha", idle, ["events"], deep=number % follow.DEEP == 0).changed
            pause.wait(0.1)
        asked = (counts.commands()["alpha"] - before) / INTERVALS
    finally:
        opened.terminate()
        opened.wait()
    return statistics.median(ours), statistics.median(theirs), asked


def main() -> int:
    if os.geteuid() != 0 or not Path("/proc/self/stat").exists():
        print("watch: SKIPPED: the lab needs root")
        return 0
    with alpha() as bench:
        ours, theirs, asked = measure(bench)
    print(f"watch: 1 MB of 500 MB took {ours * 1000:.0f} ms, by ssh {theirs * 1000:.0f} ms")
    return table(
        "event files of 40 runs",
        [
            Figure("1 MB of new events, relative to reading it by ssh", ours / theirs, 2.0),
            Figure("requests per interval, for 200 idle runs", asked, 1.0),
        ],
    )


if __name__ == "__main__":
    sys.exit(main())
