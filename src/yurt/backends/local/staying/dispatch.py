"""Runs the function calls of a sweep in processes that stay and take the next call. Started as a script.

Instead of waiter.py, for the sweeps that `may_stay` (plan.py) accepts. One dispatcher per sweep hands out the tasks, in order, to one
runner per slot (runner.py); a runner writes the same records as job.sh, in the same order. Each process can be
killed at any time: tasks that no runner has taken are handed to others, or submitted again if the dispatcher is gone.
Standard library only.
"""

from __future__ import annotations

import json
import os
import select
import socket
import stat
import sys
import time

if __name__ == "__main__":
    sys.path.append(__file__.rpartition("/yurt/")[0])

from yurt.backends.local import waiter
from yurt.backends.local.staying import records
from yurt.backends.local.staying.runner import Runner
from yurt.backends.local.staying.running import Sweep

PAUSE = 1.0
"""Seconds between two records of which tasks are left, for `yurt cluster`; refreshes look at the tasks themselves."""

BROKEN = 3
"""How many runners may end in a row without taking a task."""


class Runners:
    """The runners of a sweep, by the socket to each, and what the dispatcher knows of them."""

    def __init__(self) -> None:
        self.pids: dict[socket.socket, int] = {}
        self.asked: dict[socket.socket, int] = {}
        """The tasks that were handed out and are not taken yet."""

    def start(self, sweep: Sweep) -> None:
        own, other = socket.socketpair()
        pid = os.fork()
        if not pid:
            code = 70
            try:
                own.close()
                for each in self.pids:
                    each.close()  # or a runner would not notice the end of the dispatcher
                os.setsid()
                code = Runner(sweep, other).work()
            finally:
                os._exit(code)
        other.close()
        self.pids[own] = pid

    def end(self, runner: socket.socket) -> int | None:
        """Forget a runner that has ended, and return the task it had not taken."""
        os.waitpid(self.pids.pop(runner), 0)
        runner.close()
        return self.asked.pop(runner, None)


def dispatch(sweep: Sweep, name: str, ticket: waiter.Ticket, numbers: list[int], *, most: int) -> None:
    """Hand the tasks out until all are taken and all runners have ended."""
    left = dict.fromkeys(numbers)
    queue, runners, broken, written = numbers[::-1], Runners(), 0, time.monotonic()
    while True:
        while queue and len(runners.pids) < min(most, len(queue) + len(runners.asked)) and broken < BROKEN:
            runners.start(sweep)
        if not runners.pids:
            return
        for runner in select.select(list(runners.pids), [], [], PAUSE if len(left) != len(ticket["left"]) else None)[0]:
            try:
                said = runner.recv(64)
            except OSError:
                said = b""
            for word in said.split():
                if word == b"next":
                    if not queue or os.path.exists(waiter.CANCEL):
                        runner.shutdown(socket.SHUT_WR)
                        continue
                    runners.asked[runner] = queue.pop()
                    try:
                        runner.sendall(b"%d\n" % runners.asked[runner])
                    except OSError:
                        pass  # it has ended, which the next turn notices
                else:
                    left.pop(runners.asked.pop(runner, int(word)), None)
                    broken = 0
            if not said:
                untaken = runners.end(runner)
                broken += untaken is not None
                if untaken is not None:
                    queue.append(untaken)
        if len(left) != len(ticket["left"]) and time.monotonic() - written >= PAUSE:
            ticket["left"], written = list(left), time.monotonic()
            records.insist(lambda: waiter.write(sweep.slots, name, ticket))


def safe(paths: list[str]) -> bool:
    """Whether the paths that a call executes, yurt's folder first, are this user's; if not, job.sh says why."""
    for path in paths:
        try:
            found = os.stat(path)
        except OSError:
            continue
        if found.st_uid != os.geteuid() or (path == paths[0] and found.st_mode & (stat.S_IWOTH | stat.S_IWGRP)):
            return False
    return True


def main(words: list[str]) -> int:
    """Detach, take a ticket for the sweep, send the process id to the caller, and dispatch the tasks."""
    about, slots, cpus, gpus, *before, run, nonce, start = words
    given = json.loads(about)
    paths = given.pop("own")
    tasks = [each for group in start.split() for each in waiter.tasks_of(group)] if ":" in start else []
    if not tasks or any(start for _task, start in tasks) or os.path.exists(records.NO_LINKS) or not safe(paths):
        return waiter.main(slots, int(cpus), int(gpus), before, run=run, nonce=nonce, start=start)
    mask = os.umask(0o077)
    writer = waiter.detached()
    os.makedirs(slots, mode=0o700, exist_ok=True)
    numbers = [number for number, _start in tasks]
    name = waiter.name_of(run, nonce)
    parallel = max(1, min(waiter.parallel_of(start), waiter.machine()[0] // max(int(cpus), 1)))
    ticket = waiter.new_ticket(run, os.getpid(), int(cpus), int(gpus), follows=True)
    ticket |= {"calls": True, "left": numbers, "most": parallel}
    waiter.write(slots, name, ticket)
    for number in (1, 2):
        os.dup2(os.open(os.devnull, os.O_WRONLY), number)
    waiter.send_pid(writer)
    while not all(waiter.over(slots, each) for each in before):
        time.sleep(1)
    sweep = Sweep(id=run, folder=os.getcwd(), nonce=nonce, slots=slots, cpus=int(cpus), mask=mask, **given)
    dispatch(sweep, name, ticket, numbers, most=parallel)
    os.unlink(os.path.join(slots, name))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
