"""Runs on a Slurm cluster: sends scripts to its login node; the pure modules next to this one parse their output."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from yurt.backends import scripts
from yurt.backends.answers import Observed
from yurt.backends.job import script
from yurt.backends.kinds import ACCOUNTING, SLURM
from yurt.backends.shell import ownership
from yurt.backends.shell.backend import ShellBackend, read_gates
from yurt.backends.slurm import options
from yurt.clocks import clocks
from yurt.errors import UnreachableError, YurtError
from yurt.model import status_answer, tasks
from yurt.model.digest import checksum
from yurt.model.facts import Facts
from yurt.model.run import Plan, Resources, RunRef
from yurt.transport.base import Answer, Host, refusal

if TYPE_CHECKING:
    from yurt.backends.slurm.exec import SlurmExec
    from yurt.model.facts import Account
    from yurt.model.live import Live, LiveNode
    from yurt.model.waiting import EndedJob, WaitingJob
    from yurt.model.where import Forecast, Question

UNCONFIRMED = 6
"""Exit code of a script whose sbatch failed, but may have submitted the job."""

NO_QUEUE = 7
"""Exit code of a script that could not read the queue."""

GOES_ON = 9
"""Exit code of a script that cancelled a job and did not see it ending."""

UPDATE = 'timeout "${yurt_patience:-60}" scontrol update "jobid=$1" "$2"'
"""Changes a job."""

CONTROL = """\
what=$1 code=0
shift
for each; do timeout "${yurt_patience:-60}" scontrol "$what" "$each" || code=1; done
exit $code"""


RELEASE_SYNCED = """\
code=0
queue=$(queue -t PENDING -u "$(id -un)" -o '%j|%k') || exit 7
for each; do
  case $(printf '%s\n' "$queue" | grep -F -e "${each#jobname=}|home_sync") in
    "${each#jobname=}|home_sync" | "${each#jobname=}|home_sync "*) continue ;;
  esac
  timeout "${yurt_patience:-60}" scontrol release "$each" || code=1
done
exit $code"""

FORGET_SYNC = """\
code=0
for each; do
  queue=$(queue -t PENDING -u "$(id -un)" -n "${each#jobname=}" -o '%F %k') || exit 7
  while read -r job comment; do
    case $comment in home_sync | 'home_sync '*) ;; *) continue ;; esac
    comment=${comment#home_sync}
    timeout "${yurt_patience:-60}" scontrol update "jobid=$job" "comment=${comment# }" || code=1
  done << end
$queue
end
done
exit $code"""
"""Removes the mark from comments of jobs; see homesync/gate.sh."""


class SlurmBackend(ShellBackend):
    """A Slurm cluster behind a login node; `accounting` returns whether it has accounting records of finished jobs."""

    scheduler = SLURM

    def __init__(self, host: Host, accounting: Callable[[], bool]) -> None:
        super().__init__(host)
        self._accounting = accounting

    @cached_property
    def exec(self) -> SlurmExec:
        from yurt.backends.slurm.exec import SlurmExec

        return SlurmExec(self.host)

    def check(self, resources: Resources, facts: Facts | None, folder: str) -> list[str]:
        from yurt.backends.slurm import check

        return check.faults(resources, facts, folder) if facts is not None else []

    def launcher(self) -> str:
        return scripts.text("launch.sh", "slurm")

    def options(self, plan: Plan) -> list[str]:
        return options.arguments(plan)

    def as_typed(self, plan: Plan) -> str:
        return options.as_typed(options.arguments(plan))

    def next_start(self, plan: Plan) -> str:
        return options.next_start(plan)

    def observe(self, runs: Sequence[RunRef], since: bytes = b"", running: str = "") -> Observed:
        from yurt.backends.slurm import queries

        rows = queries.poll_input(runs)
        days = str(status_answer.days_since(runs))
        rests = self.host.limit(ACCOUNTING) < self.host.limit()
        accounting = "no" if not self._accounting() else "silent" if rests else "yes"
        text = script.gate() + queries.poll_script()
        folders = [run.folder for run in runs]
        answer = ownership.run(
            self.host,
            folders,
            text,
            accounting,
            days,
            stdin=rows.encode(),
            timeout=120,
            prefetch=True,
            first=queries.files_reader(running) if running else "",
            part=SLURM,
        )
        if answer.code:
            raise self._unfinished(answer) or refusal(self.host.name, "cannot read the queue", answer.errors)
        self.host.note_response(SLURM)
        files, out = status_answer.split_files(answer.out, asked=bool(running))
        if accounting == "yes" and b"\n= silent\n" in out and answer.seconds >= clocks().slow:
            self.host.note_silent(ACCOUNTING)
        elif accounting == "yes":
            self.host.note_response(ACCOUNTING)
        mark = checksum(out)
        if mark == since and all(run.mark for run in runs) and not status_answer.has_folders(out):
            return Observed({}, mark, {run.id: run.held for run in runs if run.held}, files)
        text = out.decode(errors="replace")
        with self.host.reading():
            return Observed(queries.read_poll(text, runs), mark, queries.held_sweeps(text, runs), files)

    def cancel(self, run: RunRef) -> str:
        text = _canceller("cancel.sh")
        answer = ownership.run(
            self.host, [run.folder], text, run.folder, run.id, timeout=120, part=SLURM, mounted=False
        )
        self._check_confirmed(run.id, answer)
        if answer.code:
            what = f"cannot cancel run {run.id}"
            raise self._unfinished(answer) or refusal(self.host.name, what, answer.errors)
        return answer.text.strip()

    def cancel_runs(self, runs: Sequence[RunRef]) -> dict[str, str]:
        if any("\n" in run.folder for run in runs):
            return {run.id: self.cancel(run) for run in runs}
        lines = "".join(f"{run.id} {run.folder}\n" for run in runs).encode()
        text = _canceller("cancel_runs.sh")
        answer = ownership.run(
            self.host, [run.folder for run in runs], text, stdin=lines, timeout=600, part=SLURM, mounted=False
        )
        if answer.code:
            raise self._unfinished(answer) or refusal(self.host.name, "cannot cancel the runs", answer.errors)
        words = (line.partition(" ") for line in answer.text.splitlines())
        asked = {run.id for run in runs}
        return {run: winner.strip() for run, _, winner in words if run in asked and winner.strip()}

    def cancel_tasks(self, sweep: RunRef) -> dict[int, str]:
        lines = "".join(f"{number}\n" for number in tasks.numbers(sweep.open)).encode()
        text = _canceller("cancel_tasks.sh")
        answer = ownership.run(
            self.host,
            [sweep.folder],
            text,
            sweep.folder,
            sweep.id,
            stdin=lines,
            timeout=600,
            part=SLURM,
            mounted=False,
        )
        self._check_confirmed(sweep.id, answer)
        if answer.code:
            what = f"cannot cancel tasks of {sweep.id}"
            raise self._unfinished(answer) or refusal(self.host.name, what, answer.errors)
        with self.host.reading():
            return read_gates(answer.text)

    def _check_confirmed(self, run: str, answer: Answer) -> None:
        if answer.code != GOES_ON:
            return
        job, state = (*answer.errors.splitlines()[-1].split(), "", "")[:2]
        raise UnreachableError(
            f"{self.host.name}: the cancellation of {run} is not confirmed: Slurm still lists job {job} as {state}",
            code="cancel-unconfirmed",
            hint="run the command again; it is safe to retry",
        )

    def hold(self, jobs: Sequence[str]) -> None:
        self._control("hold", jobs)

    def release(self, jobs: Sequence[str]) -> None:
        self._control("release", jobs)

    def release_synced(self, jobs: Sequence[str]) -> None:
        self._tell(RELEASE_SYNCED, jobs, "cannot release the job")

    def forget_sync(self, jobs: Sequence[str]) -> None:
        self._tell(FORGET_SYNC, jobs, "cannot change the comment of the job")

    def _tell(self, text: str, jobs: Sequence[str], what: str) -> None:
        answer = self.host.run(text, *jobs, timeout=90, part=SLURM)
        if answer.code:
            raise self._unfinished(answer) or refusal(self.host.name, what, answer.errors)

    def _control(self, what: str, jobs: Sequence[str]) -> None:
        answer = self.host.run(CONTROL, what, *jobs, part=SLURM)
        if answer.code:
            raise refusal(self.host.name, f"cannot {what} the job", answer.errors)

    def extend(self, job: str, minutes: int) -> None:
        self._update(job, f"TimeLimit=+{minutes}", f"cannot extend job {job}")

    def allow_any_node(self, job: str) -> None:
        self._update(job, "ReqNodeList=", f"cannot change the nodes of job {job}")

    def _update(self, job: str, change: str, what: str) -> None:
        answer = self.host.run(UPDATE, job, change, timeout=90, part=SLURM)
        if answer.code:
            raise self._unfinished(answer) or refusal(self.host.name, what, answer.errors)

    def nodes(self) -> list[LiveNode]:
        from yurt.backends.slurm import live

        answer = self.host.run(live.nodes_script(), timeout=60, part=SLURM)
        if answer.code:
            raise self._unfinished(answer) or refusal(self.host.name, "cannot query the nodes", answer.errors)
        with self.host.reading():
            return live.read_nodes(answer.text)

    def look(self, accounts: Sequence[Account]) -> Live:
        from yurt.backends.slurm import live, probe

        mark = probe.new_mark()
        answer = self.host.run(live.script(), mark, timeout=90, part=SLURM)
        if answer.code:
            raise self._unfinished(answer) or refusal(self.host.name, "cannot query the site", answer.errors)
        with self.host.reading():
            return self._noted(live.read(mark, answer.text, accounts, now=time.time()), answer)

    def forecast(self, accounts: Sequence[Account], question: Question) -> Forecast:
        from yurt.backends.slurm import live, probe, where
        from yurt.model.where import MOST, Forecast

        mark, began = probe.new_mark(), time.time()
        rows, shared = where.lines(question).encode(), where.common(question)
        answer = self.host.run(where.script(), mark, "", str(MOST), *shared, stdin=rows, timeout=120, part=SLURM)
        if answer.code:
            raise self._unfinished(answer) or refusal(self.host.name, "cannot query the site", answer.errors)
        ended = time.time()
        with self.host.reading():
            found = where.read(probe.sections(mark, answer.text).get("where", []), question.asks)
            return Forecast(
                live=self._noted(live.read(mark, answer.text, accounts, now=ended), answer),
                answers=found.answers,
                clock=0.0 if found.now is None else _ahead(found.now, began, ended),
                absent=[path for at, path in enumerate(question.paths) if found.now and at not in found.there],
            )

    def look_at(self, job: str, accounts: Sequence[Account]) -> tuple[Live, WaitingJob | None]:
        from yurt.backends.slurm import live, probe, waiting

        mark = probe.new_mark()
        answer = self.host.run(live.script(), mark, job, timeout=90, part=SLURM)
        if answer.code:
            raise self._unfinished(answer) or refusal(self.host.name, "cannot query the site", answer.errors)
        with self.host.reading():
            found = self._noted(live.read(mark, answer.text, accounts, now=time.time()), answer)
            return found, waiting.read(mark, answer.text, job)

    def look_back(self, job: str, node: str) -> EndedJob:
        from yurt.backends import scripts
        from yurt.backends.slurm import probe, waiting

        mark = probe.new_mark()
        answer = self.host.run(
            scripts.text("fields.sh", "slurm") + scripts.text("ended.sh", "slurm"), mark, job, node, timeout=60
        )
        if answer.code:
            raise self._unfinished(answer) or refusal(self.host.name, "cannot query the job", answer.errors)
        with self.host.reading():
            return waiting.read_ended(mark, answer.text)

    def failure(self, answer: Answer) -> YurtError:
        if answer.code == UNCONFIRMED:
            from yurt.backends.slurm import refusals

            error: YurtError = refusals.unconfirmed(self.host.name, answer.errors)
        else:
            error = self._unfinished(answer) or super().failure(answer)
        if error.code == "slurm-not-responding":
            self._note_silence(answer)
        return error

    def submit_failure(self, errors: str) -> YurtError:
        from yurt.backends.slurm import refusals

        return refusals.classify(self.host.name, errors)

    def _noted(self, live: Live, answer: Answer) -> Live:
        """Note whether Slurm responded, and return what it said."""
        if live.silent:
            self._note_silence(answer)
        else:
            self.host.note_response(SLURM)
        return live

    def _note_silence(self, answer: Answer) -> None:
        """Note that Slurm did not respond, unless it took no time to find that out."""
        if answer.seconds >= min(clocks().slow, clocks().again):
            self.host.note_silent(SLURM)

    def _unfinished(self, answer: Answer) -> UnreachableError | None:
        """Return the error for a script that did not finish; None if it finished, so that its exit code is valid."""
        if answer.code == NO_QUEUE:
            from yurt.backends.slurm import refusals

            self._note_silence(answer)
            return refusals.not_responding(self.host.name, answer.errors)
        if answer.killed:
            return UnreachableError(
                f"{self.host.name}: the remote command was killed before it finished",
                code="connection-lost",
                hint="run the command again; it is safe to retry",
            )
        return None


def _canceller(name: str) -> str:
    """Return a script that cancels runs or tasks."""
    return script.closer() + scripts.text("end_jobs.sh", "slurm") + scripts.text(name, "slurm")


def _ahead(there: float, began: float, ended: float) -> float:
    """Return how far a clock is ahead that showed `there` between two moments; 0 if it may be right."""
    return there - ended if there > ended else min(0.0, there + 1 - began)
