"""Slurm as a place to run: what the pure modules beside it write and read, sent to a login node."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Sequence

from yurt.backends.base import Backend, read_gates
from yurt.backends.job import script
from yurt.backends.shell import scripts
from yurt.backends.slurm import options, queries
from yurt.errors import UnreachableError, YurtError
from yurt.hosts.base import Answer, refusal
from yurt.model import tasks
from yurt.model.digest import checksum
from yurt.model.run import Plan, Spot
from yurt.model.state import Sighting

KILLED = re.compile(r"\bKilled\b|terminated by signal")
"""What shells and xargs say of a step that was killed, as login nodes do with who takes too much of them."""


class SlurmBackend(Backend):
    """A Slurm cluster behind a login node."""

    def launcher(self) -> str:
        return scripts.text("launch.sh", "slurm")

    def options(self, plan: Plan) -> list[str]:
        return options.arguments(plan)

    def as_typed(self, plan: Plan) -> str:
        return options.as_typed(options.arguments(plan))

    def next_start(self, plan: Plan) -> str:
        return options.next_start(plan)

    def look(self, runs: Sequence[Spot]) -> dict[str, Sighting]:
        rows = queries.ask(runs)
        oldest = min((run.created for run in runs), default=time.time())
        days = str(max(1, int((time.time() - oldest) / 86400) + 2))
        accounting = "yes" if self.accounting else "no"
        text = script.gate() + scripts.text("poll.sh", "slurm")
        answer = self.host.run(text, accounting, days, stdin=rows.encode(), timeout=120, again=True)
        if answer.code:
            raise self._unfinished(answer) or refusal(self.host.name, "the queue could not be read", answer.errors)
        before, self.answered = self.answered, checksum(answer.out)
        if self.answered == before and all(run.mark for run in runs) and not queries.has_folders(answer.out):
            return {}
        return queries.read_poll(answer.text, runs)

    def cancel(self, run: Spot) -> str:
        answer = self.host.run(script.closer() + scripts.text("cancel.sh", "slurm"), run.folder, run.id, timeout=120)
        if answer.code:
            what = f"run {run.id} could not be cancelled"
            raise self._unfinished(answer) or refusal(self.host.name, what, answer.errors)
        return answer.text.strip()

    def cancel_tasks(self, sweep: Spot) -> dict[int, str]:
        lines = "".join(f"{number}\n" for number in tasks.numbers(sweep.open)).encode()
        text = script.closer() + scripts.text("cancel_tasks.sh", "slurm")
        answer = self.host.run(text, sweep.folder, sweep.id, stdin=lines, timeout=600)
        if answer.code:
            what = f"tasks of {sweep.id} could not be cancelled"
            raise self._unfinished(answer) or refusal(self.host.name, what, answer.errors)
        return read_gates(answer.text)

    def release(self, job: str) -> None:
        with contextlib.suppress(YurtError):
            self.host.run('timeout 60 scontrol release "$1"', job)

    def failure(self, answer: Answer) -> YurtError:
        return self._unfinished(answer) or super().failure(answer)

    def not_taken(self, words: str) -> YurtError:
        from yurt.backends.slurm import refusals

        return refusals.classify(self.host.name, words)

    def _unfinished(self, answer: Answer) -> UnreachableError | None:
        """The error for a script that did not come to its end; None if it did, and its failure is an answer."""
        if answer.code == queries.SILENT:
            from yurt.backends.slurm import refusals

            return refusals.silent(self.host.name, answer.errors)
        if answer.code > 128 or KILLED.search(answer.errors):  # how far it had come, nobody knows
            return UnreachableError(
                f"{self.host.name}: its script was killed there before it had ended",
                code="answer-lost",
                hint="repeat the command: it is safe to",
            )
        return None
