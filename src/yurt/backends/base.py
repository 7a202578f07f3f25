"""The contract every kind of context keeps: submit a plan, look at runs, cancel one. All may be repeated.

UnreachableError: it may or may not have happened, repeat it. RefusedError: it did not happen, and will not.
"""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from yurt.backends.job import module, script
from yurt.errors import RefusedError, UnreachableError, YurtError
from yurt.hosts import Host
from yurt.hosts.base import Answer, refusal
from yurt.model import layout
from yurt.model.run import Plan, Spot
from yurt.model.state import Sighting

if TYPE_CHECKING:
    from yurt.model.secrets import Shares

NOT_WHOLE, NO_GIT, NO_BASE = 45, 46, 47
"""Exit codes of the script that receives code."""

SILENT, NOT_TAKEN = 7, 8
"""Exit codes: the queue could not be seen; the job was refused."""

DISCARD = '[ -e "$1/@WINNER@" ] || [ -e "$1/@WINNER@.d" ] || [ -e "$1/@TASKS@" ] || rm -rf -- "$1"'

DROP_SHARES = 'for each; do rm -f -- "$each"/@SECRET@*; done'


class CodeParcel(msgspec.Struct, frozen=True, kw_only=True):
    """Code on its way with a submission; without a kind, only the hope that it is there already."""

    receiver: str
    kind: str = ""
    base: str = ""
    content: bytes = b""


class Placed(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a submission: a job, or the wish for code first."""

    job: str = ""
    winner: str = ""
    """What stands in the gate, if somebody has passed it: NONCE.JOB, or `cancelled`."""
    needs: list[str] | None = None
    """What the site knows of the project's code, if it has not this one."""
    base_missing: bool = False
    groups: dict[str, str] = {}
    """Of a sweep: the groups of tasks that went out, and the job of each."""


class Backend(ABC):
    """A kind of context. Subclasses say how a placed run is started, seen and ended."""

    def __init__(self, host: Host, accounting: bool = False) -> None:
        self.host = host
        self.accounting = accounting
        self.answered = b""
        """A checksum of the answer to the last look, the last yurt's too: the same again need not be read."""

    @abstractmethod
    def launcher(self) -> str:
        """The sh functions `look` and `launch` for this kind."""

    @abstractmethod
    def options(self, plan: Plan) -> list[str]:
        """The arguments of `launch`."""

    @abstractmethod
    def as_typed(self, plan: Plan) -> str:
        """How one would submit job.sh by hand, in its folder."""

    def next_start(self, _plan: Plan) -> str:
        """What in job.sh submits a job for a later start; empty where the script just goes on."""
        return ""

    def files(self, plan: Plan) -> dict[str, bytes]:
        """The files of a run folder at its beginning."""
        return {
            layout.RUN: msgspec.json.encode(plan.run),
            layout.PLAN: msgspec.json.encode(plan),
            layout.JOB: script.job(plan, submitted_as=self.as_typed(plan), again=self.next_start(plan)).encode(),
            layout.DATA: script.data(plan),
            **self._own_values(plan),
        }

    def _own_values(self, plan: Plan) -> dict[str, bytes]:
        if not plan.run.sets:
            return {layout.PARAMS: script.params(plan)}
        sets, offsets = script.sets(plan)
        return {layout.SETS: sets, layout.OFFSETS: offsets}

    @abstractmethod
    def look(self, runs: Sequence[Spot]) -> dict[str, Sighting]:
        """What is to be seen of runs, all in one go; those of which nothing is new may be left out.

        UnreachableError: could not look.
        """

    @abstractmethod
    def cancel(self, run: Spot) -> str:
        """End a run, or see to it that it never starts. Returns what stands in its gate.

        Of a sweep that is `cancelled`, and after it the numbers of the tasks that had begun.
        """

    @abstractmethod
    def cancel_tasks(self, sweep: Spot) -> dict[int, str]:
        """The same for those tasks of a sweep that are `open`, in one go, also where nothing of it has arrived."""

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
    ) -> Placed:
        """Place a run and have it started; however often this is repeated, its code starts once.

        `start` counts: the second and later ones are for a run whose last start is over and left no successor.
        `tasks`, of a sweep, are groups of them: see place.sh.
        `shares` are those of the run's secrets, made for this nonce.
        `calls` are those of functions that its tasks make; they may stay away once some tasks have gone out.
        """
        own = {layout.CALLS: calls} if calls else {}
        files = {**self.files(plan), **own, f"node/{module.name()}": module.parcel()}
        sizes = " ".join([str(len(code.content)), *(f"{len(each)} {name}" for name, each in files.items())])
        apart = [] if shares is None else [shares.folder, shares.environment]
        folder = plan.run.folder.removeprefix(f"{plan.project_folder}/")
        arguments = [plan.project_folder, folder, plan.run.code.tree, code.kind, code.base, sizes, nonce]
        arguments.append(tasks or ("" if start == 1 else str(start)))
        arguments.append(" ".join(str(len(each)) for each in apart))
        content = b"".join([*apart, code.content, *files.values()])
        text = script.gate() + code.receiver + "\n" + self.launcher() + script.placer()
        answer = self.host.run(text, *arguments, *self.options(plan), stdin=content, timeout=600)
        if answer.code == NO_GIT:
            return Placed(needs=["plain"])
        if answer.code == NO_BASE:
            return Placed(base_missing=True)
        if answer.code:
            raise self.failure(answer)
        word, _, rest = answer.text.strip().partition("\n")[0].partition(" ")
        if word == "need":
            return Placed(needs=answer.text.split()[1:])
        if word == "started":
            return Placed(winner=rest, job=rest.partition(".")[2])
        if tasks:
            lines = [line.split() for line in answer.text.splitlines()]
            return Placed(groups={line[2]: line[1] for line in lines if len(line) == 3 and line[0] == "submitted"})
        return Placed(job=rest)

    def release(self, job: str) -> None:  # noqa: B027
        """Let a job go that its scheduler holds back. Best effort; where there is no scheduler, nothing."""

    def discard(self, run: Spot) -> None:
        """Remove what a refused submission left, so that nothing of it can start later. Best effort."""
        with contextlib.suppress(YurtError):
            self.host.run(layout.fill_in(DISCARD), run.folder)

    def drop_shares(self, folders: Sequence[str]) -> None:
        """Remove the shares of secrets from the folders of runs that have ended. Best effort."""
        with contextlib.suppress(YurtError):
            self.host.run(layout.fill_in(DROP_SHARES), *folders)

    def failure(self, answer: Answer) -> YurtError:
        """What it means that a submission failed."""
        if answer.code == NOT_WHOLE and "No space" not in answer.errors and "quota" not in answer.errors.lower():
            return UnreachableError(
                f"{self.host.name}: the run did not arrive whole",
                code="answer-lost",
                hint="repeat the command: it is safe to",
            )
        if answer.code == NOT_TAKEN:
            return self.not_taken(answer.errors)
        return refusal(self.host.name, "the run could not be placed", answer.errors)

    def not_taken(self, words: str) -> YurtError:
        """What it means that a placed run could not be started."""
        return RefusedError(f"{self.host.name}: the run could not be started: {words}", code="site-refused")


def read_gates(text: str) -> dict[int, str]:
    """What stands in the gates of tasks: lines of a number and that."""
    pairs = (line.partition(" ") for line in text.splitlines())
    return {int(number): winner for number, _, winner in pairs}
