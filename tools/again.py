"""Repeats tests and counts how often each fails: `make test AGAIN=5 ONLY="…"`, on a busy or a slow machine.

LOAD=4 processes per core keep the machine busy meanwhile. They end with this process, also if it is killed.
QUOTA=0.5 gives the tests and all they start at most half a core, by a cgroup.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

LOAD = 4.0
"""Busy processes per core, unless LOAD or QUOTA is given."""

BURN = """\
import os, sys
while os.getppid() == int(sys.argv[1]):
    for _ in range(10**6):
        pass
"""
"""Looks for its parent several times a second, even if it has a tenth of a core."""

PERIOD = 100_000
"""Microseconds between two allotments of CPU time, the kernel's default."""

STOPPED = 2
"""pytest's exit code after Ctrl-C, or if it cannot collect the tests: the next repetition would end the same way."""

CGROUPS = Path("/sys/fs/cgroup")
NAME = "yurt-test"


class NoQuotaError(Exception):
    """This machine does not limit the CPU time of the tests; the text says why."""


def repeat(times: int, load: float, quota: float, run: Callable[[list[str], Path], int]) -> int:
    """Run tests several times. `run` gets words to put before the command, and the file for its outcomes."""
    failed: Counter[str] = Counter()
    ran: Counter[str] = Counter()
    broken = 0
    processes = round(load * (os.cpu_count() or 1))
    with TemporaryDirectory() as folder, limited(quota) as words, busy(processes):
        for number in range(1, times + 1):
            limit = f", {quota} of a core for the tests" if quota else ""
            print(f"test: {number} of {times}, {processes} busy processes{limit}", flush=True)
            outcomes = Path(folder, str(number))
            code = run(words, outcomes)
            found: dict[str, str] = json.loads(outcomes.read_text()) if outcomes.exists() else {}
            failures = [test for test, outcome in found.items() if outcome == "failed"]
            failed.update(failures)
            ran.update(test for test, outcome in found.items() if outcome != "skipped")
            broken += code != 0 and not failures
            if code == STOPPED:
                break
    for line in summary(ran, failed):
        print(f"test: {line}")
    if broken:
        print(f"test: {broken} of {times} repetitions ended without a result")
    return int(bool(failed) or bool(broken))


def summary(ran: Counter[str], failed: Counter[str]) -> Iterator[str]:
    """Yield how often each test failed, the worst first."""
    for test, count in failed.most_common():
        yield f"failed {count} of {ran[test]}: {test}"
    passed = len(ran) - len(failed)
    yield f"failed never: {passed} test{'s' * (passed != 1)}"


@contextmanager
def busy(processes: int) -> Iterator[None]:
    """Keep the machine busy at normal priority."""
    argv = [sys.executable, "-S", "-c", BURN, str(os.getpid())]
    burning = [subprocess.Popen(argv, stdin=subprocess.DEVNULL) for _ in range(processes)]
    try:
        yield
    finally:
        for each in burning:
            each.kill()
        for each in burning:
            each.wait()


@contextmanager
def limited(cores: float) -> Iterator[list[str]]:
    """Make a cgroup that may use so many cores; yield the words that start a command in it."""
    if not cores:
        yield []
        return
    parent, limits = hierarchy(cores)
    group = parent / NAME
    try:
        group.mkdir(exist_ok=True)
        for file, value in limits.items():
            (group / file).write_text(value)
        yield ["sh", "-c", 'echo $$ > "$0" && exec "$@"', str(group / "cgroup.procs")]
    except OSError as error:
        raise NoQuotaError(f"QUOTA needs a cgroup of its own, which root can make: {error}") from error
    finally:
        release(group)


def hierarchy(cores: float) -> tuple[Path, dict[str, str]]:
    """Return the folder for new cgroups, and the files that limit the CPU time of one."""
    quota = round(cores * PERIOD)
    if (CGROUPS / "cpu" / "cpu.cfs_quota_us").exists() or (CGROUPS / "cpu" / "cgroup.procs").exists():
        return CGROUPS / "cpu", {"cpu.cfs_period_us": str(PERIOD), "cpu.cfs_quota_us": str(quota)}
    controllers = CGROUPS / "cgroup.subtree_control"
    if not controllers.exists():
        raise NoQuotaError(f"QUOTA needs cgroups in {CGROUPS}")
    if "cpu" not in controllers.read_text().split():
        try:
            controllers.write_text("+cpu")
        except OSError as error:
            raise NoQuotaError(f"QUOTA needs a cgroup, which root can make: {error}") from error
    return CGROUPS, {"cpu.max": f"{quota} {PERIOD}"}


def release(group: Path) -> None:
    """Move what goes on, such as a lab that stays up, out of a cgroup, and remove it."""
    for _ in range(10):  # a process that starts others meanwhile
        with suppress(OSError):
            group.rmdir()
            return
        with suppress(OSError):
            for pid in (group / "cgroup.procs").read_text().split():
                with suppress(OSError):
                    (group.parent / "cgroup.procs").write_text(pid)
