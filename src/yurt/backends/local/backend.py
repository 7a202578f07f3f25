"""Runs on this machine. Their state is read from files and from the process table."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from yurt.backends import scripts
from yurt.backends.answers import CodeParcel, Observed, Placed
from yurt.backends.job import script
from yurt.backends.local import process, runner, waiter
from yurt.backends.shell import ownership
from yurt.backends.shell.backend import ShellBackend, read_gates
from yurt.errors import RefusedError
from yurt.model import ids, layout, tasks
from yurt.model.facts import Facts
from yurt.model.run import Plan, Resources, RunRef
from yurt.model.state import CANCELLED, Observation, read_ending, read_metrics
from yurt.transport.base import Host, refusal

if TYPE_CHECKING:
    from yurt.backends.local.files import LocalFiles
    from yurt.model.facts import Account
    from yurt.model.live import Live
    from yurt.model.secrets import Shares
    from yurt.model.storage import TierPlace
    from yurt.model.where import Forecast, Question

PACKAGES = """\
import sys
for name, folder in zip(("yurt", "yurt.backends", "yurt.backends.local"), sys.argv.pop(1).split(chr(10))):
    sys.modules[name] = type(sys)(name)
    sys.modules[name].__path__ = [folder]
"""
"""The beginning of the programs below: of yurt they import only what they need, which takes a third of the time."""

WAITER = f"{PACKAGES}from yurt.backends.local import process, runner, waiter\nwaiter.begin()\n"
"""The program of a run's process."""

DISPATCHER = f"{PACKAGES}from yurt.backends.local.staying import dispatch\ndispatch.begin()\n"
"""The program of the process of a sweep whose calls run in processes that stay."""

BUSY = "waiting: other runs use all slots of this machine"

CANCEL_SWEEP = 'close_sweep "$1"; [ -n "$winner" ] && echo "$winner $(begun_tasks "$1")"'

CANCEL_TASKS = 'failed=; close_tasks "$1"; [ -z "$failed" ]'

CANCEL = 'close_gate "$1"; [ -n "$winner" ] && echo "$winner"'


class LocalBackend(ShellBackend):
    """Runs as processes on this machine, detached from the terminal. `slots` is the folder of their tickets."""

    def __init__(self, host: Host, slots: Path) -> None:
        super().__init__(host)
        self.slots = slots

    @cached_property
    def files(self) -> LocalFiles:
        from yurt.backends.local.files import LocalFiles

        return LocalFiles(self.host)

    def launcher(self) -> str:
        return scripts.text("launch.sh", "local")

    def options(self, plan: Plan) -> list[str]:
        resources, before = plan.run.resources, [each.folder for each in plan.run.after if each.folder]
        return [
            sys.executable,
            *_program(plan),
            str(self.slots),
            str(resources.cpus or 1),
            str(resources.gpus or 0),
            _facts(plan),
            *before,
        ]

    def submit(
        self,
        plan: Plan,
        nonce: str,
        code: CodeParcel,
        *,
        start: int = 1,
        tasks: str = "",
        shares: Shares | None = None,
        calls: bytes = b"",
        building: bool = False,
        room: TierPlace | None = None,
    ) -> Placed:
        special = start != 1 or tasks or calls or building or plan.setup.env or code.kind or room is not None
        if not special and shares is None:
            from yurt.backends.local.place import place

            if job := place(plan, nonce, self._files(plan), self.options(plan)):
                return Placed(job=job)
        return super().submit(
            plan, nonce, code, start=start, tasks=tasks, shares=shares, calls=calls, building=building, room=room
        )

    def as_typed(self, _plan: Plan) -> str:
        return f"sh {layout.JOB} NONCE"

    def check(self, resources: Resources, facts: Facts | None, folder: str) -> list[str]:
        from yurt.backends.local import check

        del facts, folder
        return check.faults(resources)

    def observe(self, runs: Sequence[RunRef], since: bytes = b"", running: str = "") -> Observed:
        del since, running
        for base in {layout.chain(run.folder)[0] for run in runs}:
            _check_own(base)
        there = {ticket["run"]: ticket for ticket in self._tickets()}
        of_sweeps = {ticket["run"].partition(".")[0]: ticket for ticket in there.values() if "." in ticket["run"]}
        found = {
            run.id: _observation(Path(run.folder), there.get(run.id) or of_sweeps.get(run.id))
            for run in runs
            if not run.open
        }
        for sweep in (run for run in runs if run.open):
            found |= _observations(sweep, there)
        return Observed(found)

    def _tickets(self) -> list[dict[str, Any]]:
        if not self.slots.is_dir():
            return []
        return sorted(waiter.tickets(str(self.slots)).values(), key=lambda ticket: bool(ticket["running"]))

    def look(self, accounts: Sequence[Account]) -> Live:
        from yurt.backends.local import live

        del accounts
        return live.look(self.slots, now=time.time())

    def forecast(self, accounts: Sequence[Account], question: Question) -> Forecast:
        from yurt.backends.local import live

        del accounts
        return live.forecast(live.look(self.slots, now=time.time()), question)

    def cancel(self, run: RunRef) -> str:
        sweep = ids.is_sweep(run.id)
        text = script.closer() + (CANCEL_SWEEP if sweep else CANCEL)
        answer = ownership.run(self.host, [run.folder], text, run.folder)
        if answer.code:
            raise refusal(self.host.name, f"cannot cancel run {run.id}", answer.errors)
        winner = answer.text.strip()
        for ticket in self._tickets():
            if ticket["run"].partition(".")[0] == run.id if sweep else _runs(ticket, run.id, winner):
                _signal(ticket["pid"], ticket["born"], signal.SIGTERM)
        return winner

    def cancel_runs(self, runs: Sequence[RunRef]) -> dict[str, str]:
        names = (layout.EXIT, f"{layout.EXIT}.d")
        over = {run.id for run in runs if any(os.path.exists(f"{run.folder}/{name}") for name in names)}
        found = {}
        for run in runs:
            with contextlib.suppress(RefusedError):
                winner = self.cancel(run)
                found[run.id] = "ended" if run.id in over else winner
        return found

    def cancel_tasks(self, sweep: RunRef) -> dict[int, str]:
        numbers = list(tasks.numbers(sweep.open))
        lines = "".join(f"{number}\n" for number in numbers).encode()
        text = script.closer() + CANCEL_TASKS
        answer = ownership.run(self.host, [sweep.folder], text, sweep.folder, stdin=lines, timeout=600)
        if answer.code:
            raise refusal(self.host.name, f"cannot cancel tasks of {sweep.id}", answer.errors)
        with self.host.reading():
            gates = read_gates(answer.text)
        winners = {ids.task(sweep.id, number): gates.get(number, "") for number in numbers}
        for ticket in self._tickets():
            if any(_runs(ticket, run, winner) for run, winner in winners.items()):
                _signal(ticket["pid"], ticket["born"], signal.SIGTERM)
        return gates


def _program(plan: Plan) -> list[str]:
    """Return the program that runs a plan, and its first arguments."""
    folder = Path(waiter.__file__).parent
    packages = "\n".join(str(each) for each in (folder.parents[1], folder.parent, folder))
    if plan.calls:
        from yurt.backends.local.staying import plan as staying

        if staying.may_stay(plan):
            return [DISPATCHER, packages, staying.about(plan)]
    return [WAITER, packages]


def _facts(plan: Plan) -> str:
    """Return the facts of an ordinary run, for runner.py; empty for another one, which only job.sh can run."""
    run, setup = plan.run, plan.setup
    special = [run.tasks, run.restart_policy, run.secrets, run.after, run.stage, plan.race, plan.holder]
    if any(special) or setup.unpack or script.elsewhere(plan):
        return ""
    return runner.written(
        layout.snapshot(plan.project_folder, run.code.tree) if run.code.tree else "",
        copy=plan.copy,
        writable=bool(plan.writable),
        subfolder=run.subfolder,
        grace=plan.grace,
        limit=plan.limit or 0,
        paths=[*layout.chain(run.folder), *script.used(plan)],
    )


def _check_own(base: str) -> None:
    """Raise RefusedError if another user could have written what is read in a folder; scripts check it with own.sh."""
    try:
        found = os.stat(base)
    except OSError:
        storage = os.path.dirname(base)
        if not os.path.isdir(storage) or not os.listdir(storage):  # as in ownership.MOUNTED
            raise ownership.unreadable("this machine", storage) from None
        return
    if found.st_uid != os.geteuid():
        raise ownership.refused("this machine", ownership.FOREIGN, f"{base} belongs to another user")
    if found.st_mode & 0o022 and _others_write(base, found):
        raise ownership.refused("this machine", ownership.OPEN, f"other users can write to {base}")


def _others_write(base: str, about: os.stat_result) -> bool:
    from yurt.node.writers import others_write  # rarely needed

    return others_write(base, about, os.geteuid())


def _runs(ticket: dict[str, Any], run: str, winner: str) -> bool:
    """Whether the process of a ticket runs a task whose gate has this content. A process for calls runs many tasks."""
    if not ticket.get("calls"):
        return bool(ticket["run"] == run)
    same = ticket["run"].partition(".")[0] == run.partition(".")[0]
    return same and winner.partition(".")[2] == str(ticket["pid"])


def _observations(sweep: RunRef, there: Mapping[str, dict[str, Any]]) -> dict[str, Observation]:
    """Return observations of a sweep's tasks, except those that are only waiting for their turn."""
    ticket = there.get(sweep.id)
    staying = [each for each in there.values() if each.get("calls") and each["run"].partition(".")[0] == sweep.id]
    if staying:
        return _observations_of_calls(sweep, next((each for each in staying if "left" in each), None))
    left = set(ticket["left"]) if ticket is not None else set()
    cancelled = Path(sweep.folder, layout.CANCEL).exists()
    found = {}
    for number in tasks.numbers(sweep.open):
        run = ids.task(sweep.id, number)
        if number in left and run not in there:
            continue
        seen = _observation(Path(layout.task(sweep.folder, number)), there.get(run))
        if seen.gone and Path(sweep.folder).is_dir():  # a task makes its folder when it starts
            seen = msgspec.structs.replace(seen, gone=False)
        if cancelled and seen.live is None and seen.ending is None:
            seen = msgspec.structs.replace(seen, winner=seen.winner or CANCELLED, stopped=CANCELLED)
        if seen.ending is not None:
            seen = msgspec.structs.replace(seen, metrics=_last_logged(Path(layout.task(sweep.folder, number))))
        found[run] = seen
    return found


def _observations_of_calls(sweep: RunRef, dispatcher: dict[str, Any] | None) -> dict[str, Observation]:
    """Do the same for calls in processes that stay, which have no ticket for each call.

    A task whose gate is open may be in the hands of such a process. Tasks are handed out in order, and each makes its
    folder; so after some tasks without a folder, the others wait for their turn.
    """
    found = {}
    absent = 0
    cancelled = Path(sweep.folder, layout.CANCEL).exists()
    for number in tasks.numbers(sweep.open):
        folder = layout.task(sweep.folder, number)
        try:
            names = set(os.listdir(folder))
        except OSError:
            absent += 1
            if dispatcher is not None and absent > dispatcher["most"] and not cancelled:
                break
            continue
        seen: Observation | None = None
        if layout.EXIT in names and (ending := read_ending(_written(Path(folder), layout.EXIT))) is not None:
            metrics = _last_logged(Path(folder)) if layout.METRICS in names else {}
            seen = Observation(ending=ending, sure=True, node=os.uname().nodename, metrics=metrics)
        elif f"{layout.START}1" in names or _written(Path(folder), layout.WINNER) == CANCELLED:
            seen = _observation(Path(folder), None)
        if seen is not None:
            found[ids.task(sweep.id, number)] = seen
    return found


def _holder(start: str) -> dict[str, Any] | None:
    """Return a ticket for the process that made a start, if it is alive."""
    *_rest, pid, born, boot = ["", "", *start.split(".")][-3:]
    alive = pid.isdigit() and born.isdigit() and boot in ("0", process.boot()) and process.born(int(pid)) == int(born)
    return {"running": True, "follows": False, "pid": int(pid)} if alive else None


def _last_logged(folder: Path) -> dict[str, Any]:
    try:
        with (folder / layout.METRICS).open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - 4000))
            last = file.read().rstrip(b"\n").rpartition(b"\n")[2]
    except OSError:
        return {}
    return read_metrics(last)


def _observation(folder: Path, ticket: dict[str, Any] | None) -> Observation:
    ending = read_ending(_written(folder, layout.EXIT))
    winner = _written(folder, layout.WINNER)
    generation = 0
    while _written(folder, f"{layout.START}{generation + 1}"):
        generation += 1
    if ticket is None and ending is None and generation:
        ticket = _holder(_written(folder, f"{layout.START}{generation}"))  # a process for calls has no ticket for each
    if ticket is not None and ending is None:
        waits = not ticket["running"]
        why = "waiting for an earlier run to finish" if ticket["follows"] else BUSY
        return Observation(
            live="queued" if waits else "running",
            native="waiting for a slot" if waits else "running",
            reason=why if waits else "",
            job=str(ticket["pid"]),
            node=os.uname().nodename,
            winner=winner,
            generation=generation,
            start=_written(folder, f"{layout.START}{generation}"),
            started=_started(folder, generation),
        )
    if ending is None:  # it may have ended since
        ending = read_ending(_written(folder, layout.EXIT))
    reason = ""
    if ending is None and generation:
        reason = _end_leftovers(folder, generation)
    return Observation(
        ending=ending,
        winner=winner,
        generation=generation,
        start=_written(folder, f"{layout.START}{generation}"),
        stopped=CANCELLED if (folder / layout.CANCEL).exists() else _written(folder, f"{layout.STOPPED}{generation}"),
        over=_written(folder, f"{layout.END}{generation}"),
        reason=reason,
        gone=not folder.is_dir(),
        sure=True,
        node=os.uname().nodename,
    )


def _started(folder: Path, generation: int) -> float | None:
    try:
        return (folder / f"{layout.START}{generation}").stat().st_mtime if generation else None
    except OSError:
        return None


def _end_leftovers(folder: Path, generation: int) -> str:
    """Kill the remaining processes of a run whose own process is gone; return why the run is lost."""
    last = _written(folder, f"{layout.START}{generation}").split(".")
    if last and last[-1] not in ("0", process.boot()):
        return "this machine was rebooted during the run"
    pid, _, born = _written(folder, f"{layout.CHILD}{generation}").partition(" ")
    if pid.isdigit() and born.isdigit() and _signal(int(pid), int(born), signal.SIGKILL, group=True):
        time.sleep(0.05)
    return "its process was killed and recorded no exit code"


def _signal(pid: int, born: int, number: signal.Signals, *, group: bool = False) -> bool:
    """Signal a process or its group, unless its process id was reused."""
    if process.born(pid) != born:
        return False
    try:
        (os.killpg if group else os.kill)(pid, number)
    except OSError:
        return False
    return True


def _written(folder: Path, name: str) -> str:
    for place in layout.written(name):
        try:
            with open(f"{folder}/{place}", errors="replace") as file:
                return file.read().strip()
        except OSError:
            continue
    return ""
