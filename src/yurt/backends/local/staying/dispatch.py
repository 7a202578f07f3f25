"""Runs the function calls of a sweep in processes that stay and take the next call.

Instead of waiter.py, for the sweeps that `may_stay` (plan.py) accepts. One dispatcher per sweep hands out the tasks, in
order, to one runner per slot (runner.py), which writes the same records as job.sh, in the same order. Each process can
be killed at any time: tasks that no runner has taken are handed to others, or submitted again if the dispatcher is
gone. Standard library only.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import socket
import sys
import time

from yurt.backends.local import own, waiter
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
        self.fresh: set[socket.socket] = set()
        """Those that have not asked for a task yet."""

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
        self.fresh.add(own)

    def end(self, runner: socket.socket) -> int | None:
        """Forget a runner that has ended, and return the task it had not taken."""
        self.fresh.discard(runner)
        os.waitpid(self.pids.pop(runner), 0)
        runner.close()
        return self.asked.pop(runner, None)


class Dispatcher:
    """Hands the tasks of a sweep out to runners, in order."""

    def __init__(self, sweep: Sweep, name: str, ticket: waiter.Ticket) -> None:
        self._sweep, self._name, self._ticket = sweep, name, ticket
        self._queue: list[int] = ticket["left"][::-1]
        self._left = dict.fromkeys(ticket["left"])
        self._runners, self._broken, self._written = Runners(), 0, time.monotonic()

    def work(self) -> None:
        """Return once all tasks are taken and all runners have ended."""
        pids, most = self._runners.pids, self._ticket["most"]
        while True:
            while len(pids) < most and len(self._runners.fresh) < len(self._queue) and self._broken < BROKEN:
                self._runners.start(self._sweep)
            if not pids:
                return
            stale = len(self._left) != len(self._ticket["left"])
            for runner in select.select(list(pids), [], [], PAUSE if stale else None)[0]:
                self._answer(runner)
            if stale and time.monotonic() - self._written >= PAUSE:
                self._ticket["left"], self._written = list(self._left), time.monotonic()
                with contextlib.suppress(OSError):  # it is only for display
                    waiter.write(self._sweep.slots, self._name, self._ticket)

    def _answer(self, runner: socket.socket) -> None:
        try:
            said = runner.recv(64)
        except OSError:
            said = b""
        for word in said.split():
            if word == b"next":
                self._hand_out(runner)
            else:
                self._runners.asked.pop(runner, None)
                self._left.pop(int(word), None)
                self._broken = 0
        if not said:
            untaken = self._runners.end(runner)
            if untaken is not None:
                self._broken += 1
                self._queue.append(untaken)

    def _hand_out(self, runner: socket.socket) -> None:
        self._runners.fresh.discard(runner)
        with contextlib.suppress(OSError):  # it has ended, which the next turn notices
            if not self._queue or os.path.exists(waiter.CANCEL):
                self._queue.clear()
                runner.shutdown(socket.SHUT_WR)
                return
            self._runners.asked[runner] = self._queue.pop()
            runner.sendall(b"%d\n" % self._runners.asked[runner])


def main(words: list[str]) -> int:
    """Detach, take a ticket for the sweep, send the process id to the caller, and dispatch the tasks."""
    about, slots, cpus, gpus, facts, *before, run, nonce, start = words
    given = json.loads(about)
    paths = given.pop("own")
    tasks = [each for group in start.split() for each in waiter.tasks_of(group)] if ":" in start else []
    if (
        not tasks
        or any(start for _task, start in tasks)
        or os.path.exists(records.NO_LINKS)
        or not own.surely_own(paths)
    ):
        return waiter.main(slots, int(cpus), int(gpus), facts, before, run=run, nonce=nonce, start=start)
    mask = os.umask(0o077)
    writer = waiter.detached()
    os.makedirs(slots, mode=0o700, exist_ok=True)
    numbers = [number for number, _start in tasks]
    name = waiter.name_of(run, nonce)
    parallel = max(1, min(waiter.parallel_of(start), waiter.cores() // max(int(cpus), 1)))
    ticket = waiter.new_ticket(run, os.getpid(), int(cpus), int(gpus), follows=True)
    ticket |= {"calls": True, "left": numbers, "most": parallel}
    waiter.write(slots, name, ticket)
    for number in (1, 2):
        os.dup2(os.open(os.devnull, os.O_WRONLY), number)
    waiter.send_pid(writer)
    while not all(waiter.over(slots, each) for each in before):
        time.sleep(1)
    sweep = Sweep(id=run, folder=os.getcwd(), nonce=nonce, slots=slots, cpus=int(cpus), mask=mask, **given)
    Dispatcher(sweep, name, ticket).work()
    os.unlink(os.path.join(slots, name))
    return 0


def begin() -> None:
    """Read the arguments, and dispatch."""
    sys.exit(main(sys.argv[1:]))
