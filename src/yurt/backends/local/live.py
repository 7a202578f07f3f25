"""The state of this machine now, as a cluster of one node. Works without /proc and without GNU tools."""

from __future__ import annotations

import os
import shutil
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Any

from yurt.backends.local import check, waiter
from yurt.model.live import Live, LiveJob, LiveNodes, Queue, gpu_counts
from yurt.model.where import Answer, Forecast, Question


def look(slots: Path, *, now: float) -> Live:
    """Return the CPUs, memory, GPUs and load of this machine, and yurt's runs on it."""
    tickets = list(waiter.tickets(str(slots)).values()) if slots.is_dir() else []
    cores, gpus = waiter.cores(), waiter.gpus()
    running = [each for each in tickets if each["running"]]
    free = max(0, cores - sum(each["cpus"] for each in running))
    taken = len({device for each in running for device in each["devices"]})
    state = "idle" if not running else "mixed" if free else "allocated"
    return Live(
        at=now,
        host=os.uname().nodename,
        nodes=LiveNodes(
            states={state: 1},
            cpus=cores,
            free_cpus=free,
            memory_mb=check.memory_mb(),
            free_memory_mb=_free_memory_mb(),
            gpus=gpu_counts([(_gpu_type(), gpus, max(0, gpus - taken))]) if gpus else [],
        ),
        queue=_queue(tickets),
        load=_load(),
    )


def forecast(live: Live, question: Question) -> Forecast:
    """Return whether a run would start now. When others end is unknown: runs on this machine have no time limit."""
    resources = question.resources
    free = live.nodes.free_cpus >= (resources.cpus or 1) and not live.queue.pending
    free = free and sum(each.free for each in live.nodes.gpus) >= (resources.gpus or 0)
    answers = [Answer(ask=ask, seconds=0.0 if free else None) for ask in question.asks if not ask.shaped]
    absent = [path for path in question.paths if not Path(path).exists()]
    return Forecast(live=live, answers=answers, absent=absent)


def _queue(tickets: list[dict[str, Any]]) -> Queue:
    """Return the runs in order: those that run, then those that wait for a slot, oldest first."""
    runs = [each for each in tickets if "left" not in each]
    later = sum(len(each["left"]) for each in tickets if "left" in each)
    waiting = [each for each in runs if not each["running"]]
    jobs = [_job(each, "running", None) for each in runs if each["running"]]
    jobs += [_job(each, "pending", at) for at, each in enumerate(waiting, 1)]
    pending = len(waiting) + later
    running = len(runs) - len(waiting)
    states = {state: count for state, count in (("running", running), ("pending", pending)) if count}
    total = len(jobs) + later
    return Queue(running=running, pending=pending, mine=jobs[:200], mine_total=total, mine_states=states)


def _job(ticket: dict[str, Any], state: str, place: int | None) -> LiveJob:
    return LiveJob(job=str(ticket["pid"]), run=str(ticket["run"]), state=state, partition="", place=place)


def _free_memory_mb() -> int | None:
    """Return the memory that programs can get, which only Linux reports; None elsewhere."""
    total = check.memory_mb()  # in a container, what Linux reports as available may be more
    with suppress(OSError, ValueError, IndexError), Path("/proc/meminfo").open() as file:
        for line in file:
            if line.startswith("MemAvailable:"):
                free = int(line.split()[1]) // 1024
                return free if total is None else min(free, total)
    return None


def _load() -> float | None:
    try:
        return round(os.getloadavg()[0], 2)
    except OSError:
        return None


def _gpu_type() -> str:
    program = shutil.which("nvidia-smi")
    if program is None:
        return ""
    words = [program, "--query-gpu=name", "--format=csv,noheader"]
    try:
        listed = subprocess.run(words, capture_output=True, timeout=10, check=False, text=True, errors="replace")
    except (OSError, subprocess.TimeoutExpired):
        return ""
    names = set(listed.stdout.splitlines())
    return names.pop().strip() if listed.returncode == 0 and len(names) == 1 else ""
