"""What every kind of context can do, by capability. Callers know nothing else of a context.

All of it may be repeated. UnreachableError: it may or may not have happened, repeat it. RefusedError: it did not
happen, and will not. Paths are those of the context; nobody else reads or writes them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from yurt.backends.answers import CodeParcel, MakeParcel, Observed, Placed, Preview
    from yurt.model.calls import CallResult
    from yurt.model.facts import Facts
    from yurt.model.files import (
        Brought,
        Contents,
        Ended,
        Gathered,
        Holdings,
        Limits,
        LogPosition,
        LogSink,
        Pick,
        Piece,
        Progress,
        Pull,
        Removed,
        Survey,
    )
    from yurt.model.run import Placement, Plan, Resources, RunRef
    from yurt.model.secrets import Shares

DISCARD = '[ -e "$1/@WINNER@" ] || [ -e "$1/@WINNER@.d" ] || [ -e "$1/@TASKS@" ] || rm -rf -- "$1"'

DROP_SHARES = 'for each; do rm -f -- "$each"/@SECRET@*; done'


class Runs(Protocol):
    """Start runs, watch them, end them."""

    def check(self, resources: Resources, facts: Facts | None, folder: str) -> list[str]:
        """Why a run with these resources can never start there; empty if nothing is known against it."""

    def preview(self, plan: Plan) -> Preview:
        """What submitting a plan would do."""

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
        `tasks`, of a sweep, are groups of them: START:OFFSET:NUMBERS.
        `shares` are those of the run's secrets, made for this nonce.
        `calls` are those of functions that its tasks make; they may stay away once some tasks have gone out.
        """

    def observe(self, runs: Sequence[RunRef], since: bytes = b"") -> Observed:
        """What is to be seen of runs, all in one go; those of which nothing is new may be left out.

        `since` is the answer of the last time. UnreachableError: could not look.
        """

    def cancel(self, run: RunRef) -> str:
        """End a run, or see to it that it never starts. Returns what stands in its gate.

        Of a sweep that is `cancelled`, and after it the numbers of the tasks that had begun.
        """

    def cancel_tasks(self, sweep: RunRef) -> dict[int, str]:
        """The same for those tasks of a sweep that are `open`, in one go, also where nothing of it has arrived."""

    def hold(self, job: str) -> None:
        """Keep a job that waits from starting. Best effort; where there is no scheduler, nothing."""

    def release(self, job: str) -> None:
        """Let a job go that its scheduler holds back. Best effort; where there is no scheduler, nothing."""

    def discard(self, run: RunRef) -> None:
        """Remove what a refused submission left, so that nothing of it can start later. Best effort."""

    def drop_shares(self, folders: Sequence[str]) -> None:
        """Remove the shares of secrets from the folders of runs that have ended. Best effort."""


class Files(Protocol):
    """Read, bring home and remove what runs wrote."""

    def read(self, folder: str, name: str) -> bytes | None:
        """A file of a run folder; None if it is not there."""

    def tail(
        self,
        logs: Sequence[LogPosition],
        sink: LogSink,
        *,
        lines: int | None = None,
        follow: bool = False,
        seconds: int = 0,
        on_end: Callable[[LogPosition], None] = lambda _log: None,
    ) -> None:
        """Hand out what runs wrote beyond these positions, and move them. With `follow`, as it comes: of one run until
        it has ended or was idle for long, of several for so many seconds.

        `lines`: of logs that were not read yet, only so many of the last. `on_end`: one that is
        `over` was handed out to its end.
        """

    def collect(
        self, ended: Sequence[Ended], limits: Limits, *, content: bool, measure: bool = False, timeout: float
    ) -> dict[int, dict[str, Piece]]:
        """Put verdicts where there are none, and bring what is kept of ended runs: their files by name, by their place
        among those asked for. Those that one trip has no room for are left out; the first one never is."""

    def call_results(self, folders: Sequence[str]) -> list[CallResult]:
        """What calls of functions returned, of the first of these tasks, as many as one trip takes; at least one."""

    def submitted_groups(self, folders: Sequence[str]) -> dict[str, str]:
        """Which groups of tasks of sweeps have gone out, from whichever machine, as the folder notes them."""

    def list_runs(self, base: str) -> list[str] | None:
        """The folders of all runs and sweeps below yurt's own folder; None if that is not there."""

    def gather(self, folders: Sequence[str]) -> tuple[dict[str, Gathered | None], int]:
        """What run folders say, of as many as one trip takes, from the first; None of one that is too large. And how
        many were asked for."""

    def gather_tasks(self, sweeps: Sequence[str]) -> dict[str, dict[int, Gathered]]:
        """The same of tasks that have begun, by their sweep's folder and number."""

    def contents(self, folders: Sequence[str]) -> dict[str, Contents]:
        """What run folders hold; those that are gone are left out."""

    def pull(
        self, runs: Sequence[Pull], target: Path, pick: Pick, progress: Progress, *, everything: bool
    ) -> tuple[str, Brought]:
        """Bring the outputs of runs, or `everything` but their code, into folders below `target`; of one run, into
        `target` itself. Returns how (rsync, tar), and what came. After a cut, repeating goes on."""

    def survey(self, folders: Sequence[str]) -> list[Survey]:
        """What each of these folders is and holds."""

    def holdings(self, base: str) -> Holdings:
        """All runs below yurt's own folder, and sizes."""

    def remove(self, folders: Sequence[str]) -> Removed:
        """Remove run folders; safe to kill at any point. Those that are not among the removed may be asked again."""

    def clear(self, base: str, folders: Sequence[str]) -> Removed:
        """Remove these run folders, and all of yurt's that is left then."""


class Code(Protocol):
    """Bring code to a context without a run."""

    def ensure(self, project_folder: str, tree: str, make: MakeParcel) -> int:
        """Have a tree checked out there; returns how many bytes travelled. May be repeated, and two may at once."""


class Exec(Protocol):
    """A command, or a terminal, inside a run."""

    def run(self, placement: Placement, words: Sequence[str], *, node: str = "", terminal: bool) -> int:
        """Run a command beside a running run, in its folder, with its environment; without words a shell.
        Standard output and error are those of whoever calls. Returns its exit code."""


class Forward(Protocol):
    """A port of a run, reached from this machine."""

    def forward(self, node: str, port: int) -> AbstractContextManager[int]:
        """Make a port of a node reachable on this machine's loopback while the block runs; yields the port here."""


class Claims(Protocol):
    """Names that only one can have: of all who put one, the first holds it for good."""

    def put(self, folder: str, name: str, holder: str) -> str:
        """Claim a name in a folder; returns who holds it."""

    def holder(self, folder: str, name: str) -> str:
        """Who holds a name; empty if nobody does."""


class Backend(Protocol):
    """A context, by what it can do."""

    @property
    def name(self) -> str: ...
    @property
    def runs(self) -> Runs: ...
    @property
    def files(self) -> Files: ...
    @property
    def code(self) -> Code: ...
    @property
    def exec(self) -> Exec: ...
    @property
    def forward(self) -> Forward: ...
    @property
    def claims(self) -> Claims: ...
