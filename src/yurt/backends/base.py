"""Protocols of a backend, one for each capability. Callers use a context only through them.

Every call is safe to retry. UnreachableError: the call may or may not have taken effect; retry it. RefusedError: it
had no effect, and a retry fails too. Paths are paths on the site; only the backend reads or writes them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from yurt.backends.answers import (
        Asked,
        CodeParcel,
        LostStart,
        MakeParcel,
        Observed,
        Placed,
        Preview,
        Uploaded,
        Want,
    )
    from yurt.model.calls import CallResult
    from yurt.model.env import EnvBuild, EnvState, EnvTools, SitePython, SiteWheels, UnusedEnv
    from yurt.model.facts import Account, Facts
    from yurt.model.files import (
        Brought,
        Contents,
        Ended,
        Gathered,
        Holdings,
        KeepItem,
        KeepSource,
        KeptItem,
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
    from yurt.model.growth import Growing, Kind, Reader
    from yurt.model.live import Live, LiveNode
    from yurt.model.run import Placement, Plan, Resources, RunRef
    from yurt.model.secrets import Shares
    from yurt.model.site_words import NodeName
    from yurt.model.storage import StorageReport, TierPlace, TierUse
    from yurt.model.waiting import EndedJob, WaitingJob
    from yurt.model.where import Forecast, Question
    from yurt.model.workspace import Workspace


class Runs(Protocol):
    """Submit, observe and cancel runs."""

    def check(self, resources: Resources, facts: Facts | None, folder: str) -> list[str]:
        """Return the reasons why a run with these resources can never start; empty if the facts show none."""

    def preview(self, plan: Plan) -> Preview:
        """Return what submitting a plan would do."""

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
        """Upload a run and submit its job. The command starts once, no matter how often this is retried.

        `start` is the number of the start; 2 and higher are for a run whose last start finished without a successor.
        `tasks` are groups of a sweep's tasks: START:OFFSET:NUMBERS.
        `shares` are the shares of the run's secrets, made for this nonce.
        `calls` are the function calls of the tasks; they can be omitted once some tasks are submitted.
        `building`: the build of the run's environment has just begun; its job is held until the end of the build.
        `room`: a storage tier whose free space the result contains, as it was just before the submission.
        """

    def observe(self, runs: Sequence[RunRef], since: bytes = b"", running: str = "") -> Observed:
        """Observe runs in one request. Runs without a change may be omitted from the result.

        `since` is the checksum of the previous observation. `running`: the folder of a run whose last metrics and
        usage may be read in the same request. UnreachableError: the site could not be queried.
        """

    def cancel(self, run: RunRef) -> str:
        """Cancel a run, or make sure that it never starts. Return the content of its gate.

        For a sweep, return `cancelled` followed by the numbers of the tasks that had started.
        """

    def cancel_runs(self, runs: Sequence[RunRef]) -> dict[str, str]:
        """Cancel runs and sweeps, in one request if possible. Return what `cancel` returns, by run.

        Of a run that had ended, the answer may be `ended`. Runs that could not be cancelled are omitted; `cancel`
        raises the reason.
        """

    def cancel_tasks(self, sweep: RunRef) -> dict[int, str]:
        """Cancel the `open` tasks of a sweep in one request, even if the sweep is not uploaded yet."""

    def hold(self, jobs: Sequence[str]) -> None:
        """Hold pending jobs, each an id or `jobname=NAME`, in one request. Without a scheduler this does nothing."""

    def release(self, jobs: Sequence[str]) -> None:
        """Release held jobs, named as for `hold`. Without a scheduler this does nothing."""

    def release_synced(self, jobs: Sequence[str]) -> None:
        """Release held jobs, `jobname=NAME`, except those that wait for a home sync."""

    def forget_sync(self, jobs: Sequence[str]) -> None:
        """Do not release these held jobs, `jobname=NAME`, after a home sync."""

    def extend(self, job: str, minutes: int) -> None:
        """Let a job run longer by so many minutes. RefusedError if the site does not allow it."""

    def allow_any_node(self, job: str) -> None:
        """Let a pending job start on any node, not only on the one that it names. RefusedError if that fails."""

    def discard(self, run: RunRef) -> None:
        """Remove the files of a refused submission, so that it cannot start later. Best effort."""

    def drop_shares(self, folders: Sequence[str]) -> None:
        """Remove the shares of secrets from the folders of finished runs. Best effort."""


class Files(Protocol):
    """Read, fetch and remove the files of runs."""

    def read(self, folder: str, name: str, *, longest_line: int | None = None) -> bytes | None:
        """Return a file of a run folder; None if it does not exist. `longest_line`: of longer lines, so many bytes."""

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
        """Pass log output after these positions to `sink` and advance the positions.

        With `follow`, stream new output: of one run until it finishes or is idle for long, of several runs for
        `seconds`. `lines` limits logs that were not read before to their last lines. `on_end` is called when a log
        of a finished run was passed on completely.
        """

    def collect(
        self, ended: Sequence[Ended], limits: Limits, *, content: bool, measure: bool = False, timeout: float
    ) -> dict[int, dict[str, Piece]]:
        """Write missing verdicts and fetch the files kept of finished runs: files by name, by index in `ended`.

        Runs that exceed the limits of one request are omitted, except the first.
        """

    def grow(self, growing: Sequence[Growing], kinds: Sequence[Kind], reader: Reader) -> None:
        """Pass the new bytes of files of these kinds, and of exit.json, to `reader`, in one request that only reads.

        All of a file is sent if there is no copy of it. UnreachableError: what has arrived may be kept.
        """

    def call_results(self, folders: Sequence[str]) -> list[CallResult]:
        """Return the results of function calls of the first tasks: one or more, as many as one request takes."""

    def submitted_groups(self, folders: Sequence[str]) -> dict[str, str]:
        """Return the groups of tasks that any machine has submitted, as recorded in the folders of the sweeps."""

    def list_runs(self, base: str) -> list[str] | None:
        """Return the folders of all runs and sweeps in yurt's storage folder; None if it does not exist."""

    def gather(self, folders: Sequence[str]) -> tuple[dict[str, Gathered | None], int]:
        """Read the records in run folders, in order, as many as one request takes; None for a folder that is too large.

        Also return how many folders were covered.
        """

    def gather_tasks(self, sweeps: Sequence[str]) -> dict[str, dict[int, Gathered]]:
        """Read the records of tasks that have started, by folder of the sweep and task number."""

    def contents(self, folders: Sequence[str]) -> dict[str, Contents]:
        """Return the contents of run folders; removed folders are omitted."""

    def outputs_at_once(
        self, folder: str, target: Path, pick: Pick, progress: Progress
    ) -> tuple[Contents, Brought | None] | None:
        """Look at a run folder, and fetch its outputs in the same session if the run has no other results.

        None: call `contents` and `pull`; nothing was fetched. So a backend may always return None. The contents are
        of the time before the transfer. Without files, these are fetched with `pull`, or there are none.
        """

    def pull(
        self, runs: Sequence[Pull], target: Path, pick: Pick, progress: Progress, *, everything: bool
    ) -> tuple[str, Brought]:
        """Fetch the outputs of runs, or `everything` except their code, into folders below `target`.

        The files of a single run are written to `target` itself. Return the method (rsync, tar) and what was fetched.
        After a lost connection, a retry continues.
        """

    def keep_look(
        self, items: Sequence[KeepItem], places: Sequence[TierPlace]
    ) -> tuple[list[KeepSource], list[TierUse]]:
        """Return what there is to copy, and how full storage tiers are, in one request."""

    def keep(
        self, tier: str, items: Sequence[KeepItem], *, checkpoints: bool, copied: Callable[[int], None]
    ) -> list[KeptItem]:
        """Copy results to a tier of the same site. `tier`: its folder. `copied` receives the number of items so far.

        Each copy is complete or does not exist. UnreachableError: the site may continue; a retry completes it.
        """

    def survey(self, folders: Sequence[str]) -> list[Survey]:
        """Return the kind and the contents of each of these folders."""

    def holdings(self, base: str) -> Holdings:
        """Return all runs in yurt's storage folder, and sizes."""

    def remove(self, folders: Sequence[str]) -> Removed:
        """Remove run folders; safe to kill at any point. Folders missing from the result can be removed by a retry."""

    def clear(self, base: str, folders: Sequence[str], home: str = "") -> Removed:
        """Remove these run folders, then all other files of yurt; `home`: its folder in the home folder."""


class Code(Protocol):
    """Upload code without a run."""

    def ensure(self, project_folder: str, tree: str, make: MakeParcel) -> int:
        """Make sure that a tree is checked out on the site; return the uploaded bytes. Concurrent calls are safe."""

    def upload(
        self, project_folder: str, tree: str, parcel: CodeParcel, *, resume: bool, moved: Callable[[int], None]
    ) -> Uploaded:
        """Upload a large parcel in pieces and check it out. Other operations of the context stay fast.

        UnreachableError, or an exception of `moved`, which receives the bytes so far: the site keeps what it has for a
        day. `resume`: an earlier upload of this parcel was interrupted; continue it.
        """


class Exec(Protocol):
    """Run a command or a terminal inside a run."""

    def run(self, placement: Placement, words: Sequence[str], *, terminal: bool) -> int:
        """Run a command in a running run's folder and environment; without `words` a shell.

        The standard streams are those of the caller. Return the exit code. UnreachableError: none arrived.
        """

    def ask(
        self,
        placement: Placement,
        words: Sequence[str],
        *,
        on_line: Callable[[bytes], None] = lambda _line: None,
        silence: float = 60,
    ) -> Asked:
        """Run a command on the first node of a running run, without input, and return its output and exit code.

        It starts outside the run's environment, in no particular folder. `on_line` receives each line of its output as
        it comes. RefusedError: the run is not running. UnreachableError: no exit code arrived, also if the command
        printed nothing for `silence` seconds.
        """

    def relay(self, placement: Placement, command: str) -> list[str]:
        """Return the program of this machine that runs an sh command on the first node of a running run.

        Standard input and output reach the command byte for byte. UnreachableError: there is no connection.
        """

    def hop(self, node: NodeName, known_hosts: Path, command: str, *, prompt: bool, share: str = "") -> list[str]:
        """Return the program of this machine that runs an sh command on a node by ssh to the node itself.

        As for `relay`. `known_hosts` contains the node's host keys under its name. `prompt`: ssh may prompt the user.
        `share`: programs with the same text share a connection to the node.
        """

    def direct(self, script: str, *arguments: str) -> list[str]:
        """Return the program of this machine that runs a script on the site itself. It fails without a connection."""


class Forward(Protocol):
    """Forward a port of a run to this machine."""

    def forward(self, node: NodeName | None, port: int) -> AbstractContextManager[int]:
        """Forward a port of a node to this machine's loopback while the block runs; yield the local port.

        None: the node on which this machine's commands run.
        """


class Claims(Protocol):
    """The claims of races. An item has one holder: the first to claim it, for good, unless its claim is ended."""

    def open(self, folder: str) -> None:
        """Make the folder of a race's claims."""

    def claim(self, folder: str, item: int, candidate: str) -> str:
        """Claim an item for a candidate; return its holder. Empty: the folder does not exist, or its disk is full."""

    def holders(self, folder: str) -> dict[int, str]:
        """Return the holder of each claimed item. RefusedError if the folder does not exist."""

    def end(self, folder: str, item: int, who: str) -> str:
        """End the claim of an item, so that another one can follow; return its holder, or an empty text."""

    def give_up(self, folder: str, item: int, candidate: str, who: str) -> bool:
        """End all claims of a candidate that never starts again; return whether it had any. Safe to repeat."""

    def end_lost(self, folder: str, start: int, lease: int) -> LostStart:
        """Make sure that start `start` of a run never begins, and that the lost one before it has ended.

        `over`: that is so, for good. `wait`: ask again; the lost start ends by itself within `lease` seconds.
        `keeps`: the run may start again on its site, where its checkpoints are.
        """

    def wants(self, folders: Sequence[str]) -> list[Want]:
        """Return the claims that jobs in these run folders wait for. Without folders, only see whether it responds."""

    def answer(self, answers: Sequence[tuple[str, str, str]]) -> None:
        """Tell jobs who holds what they asked for: run folder, word of the question, holder."""

    def make_key(self, folder: str) -> str:
        """Make an ssh key in a folder on this site, once; return its public part. The other part stays there."""

    def add_keys(self, folder: str, keys: Sequence[str], until: float) -> str:
        """Let these public keys claim items in a folder, and nothing else, until then; return the site's host keys."""

    def know_host(self, folder: str, lines: str) -> None:
        """Write the file known_hosts in the folder of a key."""

    def reaches(self, words: Sequence[str]) -> str:
        """Return why the login host does not reach the arbiter with this ssh command; empty if it does."""

    def close(self, folder: str) -> None:
        """Remove the folder of a race, and the keys that may use it. Safe to repeat."""


class Envs(Protocol):
    """Build environments in the background, and find out about them."""

    def ask(self, base: str, modules_init: str, modules: Sequence[str]) -> EnvTools:
        """Return what the site has for building environments, after these modules are loaded."""

    def wheelhouse(
        self,
        python: SitePython,
        modules_init: str,
        modules: Sequence[str],
        folders: Sequence[str],
        names: Sequence[str],
    ) -> SiteWheels:
        """Return the wheels that folders of the site have of some packages, and of those that they require."""

    def sums(self, paths: Sequence[str]) -> list[str]:
        """Return the SHA-256 of files of the site, in order."""

    def start(self, build: EnvBuild) -> bool:
        """Start to build an environment, unless that is done or under way. Return whether it is complete already."""

    def look(
        self, folders: Sequence[str], *, brief: bool = False, wait: float = 0, edits: bool = False
    ) -> list[EnvState]:
        """Return the state of environments, in order; `brief`: without the lists of packages.

        `wait`: while they are being built, return after this many seconds. `edits`: look at all their files for edits;
        otherwise that happens at most once an hour.
        """

    def folders(self, bases: Sequence[str]) -> list[str]:
        """Return the folders of all environments in these folders of yurt on the site."""

    def lacking(self, folder: str, files: Sequence[str]) -> list[str]:
        """Return which of these wheels, SHA256/NAME, are not on the site. `folder` is that of an environment."""

    def send(self, folder: str, file: str, content: bytes, moved: Callable[[int], None]) -> None:
        """Upload a wheel, SHA256/NAME, in pieces. UnreachableError: a retry continues."""

    def has_tool(self, folder: str, name: str) -> bool:
        """Return whether a program of yurt is on the site. `folder` is that of an environment."""

    def send_tool(self, folder: str, name: str, content: bytes, moved: Callable[[int], None]) -> None:
        """Upload a program, compressed by gzip, in pieces. UnreachableError: a retry continues."""

    def let_go(self, folder: str, jobs: Sequence[str]) -> None:
        """Do not release these held jobs, `jobname=NAME`, when the environment in this folder is built."""

    def remove(self, folders: Sequence[str]) -> None:
        """Remove environments. Their locks stay."""

    def prune(
        self, runs: str, base: str, seconds: float, unfinished: Sequence[str], chosen: Sequence[UnusedEnv] = ()
    ) -> list[UnusedEnv]:
        """Return environments that nobody has used for so long, replaced ones, and wheels that no other one needs.

        `runs`, `base`: yurt's folders on the site with runs and with these environments.
        With `chosen`: remove those of them that are still unused; return what was removed. Never one
        that a job in the queue needs, or whose address is in `unfinished`, or that is being built.
        """


class Workspaces(Protocol):
    """Read the backups of workspaces, and copy their files."""

    def look(self, folders: Sequence[str]) -> list[Workspace]:
        """Return what these backups folders contain, in order, in one request."""

    def holders(self, base: str) -> list[str]:
        """Return what dev nodes say that use workspaces below yurt's folder `base` now, or that were killed there."""

    def bring(self, folder: str, names: Sequence[str], target: Path, progress: Progress) -> None:
        """Fetch files of a folder into the folder `target`. After a lost connection, a retry continues."""

    def send(self, folder: str, name: str, file: Path, moved: Callable[[int], None]) -> None:
        """Upload a file in pieces, unless the folder has one of this name. UnreachableError: a retry continues."""


class Site(Protocol):
    """Look at the whole site, not only at runs of yurt."""

    def look(self, accounts: Sequence[Account]) -> Live:
        """Return the state of the site now, in one request. `accounts` are the user's, as far as they are known.

        If only the scheduler does not respond, `silent` of the result says so. UnreachableError: nothing responds.
        """

    def look_at(self, job: str, accounts: Sequence[Account]) -> tuple[Live, WaitingJob | None]:
        """Return the state of the site as `look` does, and a pending job, in one request.

        None if the queue does not list the job as pending, or without a scheduler.
        """

    def look_back(self, job: str, node: str) -> EndedJob:
        """Return what the site says about a job that has ended, and about its node, in one request."""

    def storage(self, places: Sequence[TierPlace], report: str = "", own: Sequence[str] = ()) -> StorageReport:
        """Return how full storage tiers are, in one request. `report`: a command of the site that prints more.

        `own`: folders of yurt to measure, within a time limit.
        """

    def forecast(self, accounts: Sequence[Account], question: Question) -> Forecast:
        """Return when requests would start, in one request that submits nothing, and the state of the site.

        Asks that are `shaped` are answered only if none of the others starts soon. The backend limits how many are
        asked; others are left out of the result. `accounts` and errors as for `look`.
        """

    def nodes(self) -> list[LiveNode]:
        """Return all nodes of the site, in one request; empty for a site without a scheduler."""


class Backend(Protocol):
    """All capabilities of a context."""

    @property
    def name(self) -> str: ...
    def silent_since(self, part: str = "") -> float | None:
        """Return when the site, or its scheduler, did not respond, if it has not responded since; None for this
        machine."""

    def gave_up(self, part: str = "") -> bool:
        """Whether this process has just waited for it in vain."""

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
    @property
    def envs(self) -> Envs: ...
    @property
    def workspaces(self) -> Workspaces: ...
    @property
    def site(self) -> Site: ...
