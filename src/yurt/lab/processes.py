"""Finds and stops the processes of a lab through /proc. There are no pid files.

The last argument of each host's first process is a mark that identifies the host. All other
processes of the host share its pid namespace.
"""

from __future__ import annotations

import os
import signal
import time
from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")


@dataclass(frozen=True)
class Use:
    """Resources that the processes of one host use."""

    names: tuple[str, ...]
    memory: int
    ticks: int


def marked(prefix: str) -> dict[str, int]:
    """Map mark to pid for every running host whose mark starts with `prefix`."""
    found: dict[str, int] = {}
    wanted = prefix.encode()
    for entry in PROC.iterdir():
        if not entry.name.isdigit():
            continue
        try:
            last = _last_argument(entry)
            if last.startswith(wanted) and _is_first_of_its_namespace(entry):
                found[last.decode()] = int(entry.name)
        except OSError:
            continue
    return found


def _last_argument(entry: Path) -> bytes:
    """Return the last argument of a process.

    The command line is empty for a moment during exec, which each host's first process does once.
    Reading it again avoids taking a running host for a dead one and starting it twice.
    """
    for _attempt in range(50):
        command = (entry / "cmdline").read_bytes().rstrip(b"\0")
        if command or not _is_first_of_its_namespace(entry) or not _alive(int(entry.name)):
            return command.split(b"\0")[-1]
        time.sleep(0.002)
    return b""


def _is_first_of_its_namespace(entry: Path) -> bool:
    for line in (entry / "status").read_text().splitlines():
        if line.startswith("NSpid:"):
            pids = line.split()[1:]
            return len(pids) > 1 and pids[-1] == "1"
    return False


def use_by_host(pids: dict[str, int]) -> dict[str, Use]:
    """Return for each host the names of its processes, its proportional memory in bytes and its CPU ticks."""
    names: dict[str, list[str]] = defaultdict(list)
    memory: dict[str, int] = defaultdict(int)
    ticks: dict[str, int] = defaultdict(int)
    owner = {_namespace(PROC / str(pid)): mark for mark, pid in pids.items()}
    for entry in PROC.iterdir():
        if not entry.name.isdigit():
            continue
        mark = owner.get(_namespace(entry))
        if mark is None:
            continue
        try:
            memory[mark] += _proportional_memory(entry)
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
            ticks[mark] += int(fields[11]) + int(fields[12])
            names[mark].append((entry / "comm").read_text().strip())
        except OSError:
            continue
    return {mark: Use(tuple(sorted(names[mark])), memory[mark], ticks[mark]) for mark in pids}


def _namespace(entry: Path) -> str:
    try:
        return os.readlink(entry / "ns" / "pid")
    except OSError:
        return ""


def _proportional_memory(entry: Path) -> int:
    for line in (entry / "smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) * 1024
    return 0


def kill_hosts(pids: list[int], *, wait: float = 10) -> None:
    """Power off hosts and wait: killing the first process makes the kernel kill the others."""
    end(pids, signal.SIGKILL, wait=wait)


def end(pids: list[int], number: signal.Signals, *, wait: float = 10) -> None:
    """Signal processes and wait until they are gone."""
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)
    deadline = time.monotonic() + wait
    while any(_alive(pid) for pid in pids) and time.monotonic() < deadline:
        time.sleep(0.01)


def _alive(pid: int) -> bool:
    try:
        state = (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"


def with_last_argument(argument: str) -> list[int]:
    """Return the processes whose last argument is exactly `argument`."""
    wanted = argument.encode()
    found = []
    for entry in PROC.iterdir():
        if entry.name.isdigit():
            try:
                if _last_argument(entry) == wanted:
                    found.append(int(entry.name))
            except OSError:
                continue
    return found
