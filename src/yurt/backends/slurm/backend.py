"""Slurm as a place to run: what the pure modules beside it write and read, sent to a login node."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from yurt.backends.base import Backend
from yurt.backends.job import script
from yurt.backends.slurm import queries, refusals
from yurt.errors import UnreachableError, YurtError
from yurt.hosts.base import Answer, refusal
from yurt.model.run import Plan, Spot
from yurt.model.state import Sighting


class SlurmBackend(Backend):
    """A Slurm cluster behind a login node."""

    def launcher(self) -> str:
        return _text("launch.sh")

    def options(self, plan: Plan) -> list[str]:
        return plan.options

    def look(self, runs: Sequence[Spot]) -> dict[str, Sighting]:
        rows = "".join(f"{run.id} {run.folder}\n" for run in runs)
        oldest = min((run.created for run in runs), default=time.time())
        days = str(max(1, int((time.time() - oldest) / 86400) + 2))
        accounting = "yes" if self.accounting else "no"
        answer = self.host.run(script.gate() + _text("poll.sh"), accounting, days, stdin=rows.encode(), timeout=120)
        if answer.code == queries.SILENT:
            raise self._silent(answer.errors)
        if answer.code:
            raise refusal(self.host.name, "the queue could not be read", answer.errors)
        return queries.read_poll(answer.text, [run.id for run in runs])

    def cancel(self, run: Spot) -> str:
        answer = self.host.run(script.gate() + _text("cancel.sh"), run.folder, run.id, timeout=120)
        if answer.code == queries.SILENT:
            raise self._silent(answer.errors)
        if answer.code:
            raise refusal(self.host.name, f"run {run.id} could not be cancelled", answer.errors)
        return answer.text.strip()

    def failure(self, answer: Answer) -> YurtError:
        return self._silent(answer.errors) if answer.code == queries.SILENT else super().failure(answer)

    def not_taken(self, words: str) -> YurtError:
        return refusals.classify(self.host.name, words)

    def _silent(self, words: str) -> UnreachableError:
        return refusals.silent(self.host.name, words)


@cache
def _text(name: str) -> str:
    return (Path(__file__).parent / name).read_text()
