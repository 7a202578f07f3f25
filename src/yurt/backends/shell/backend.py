"""Base of backends for sites with sh and a file system that jobs share. Subclasses launch, observe and cancel runs."""

from __future__ import annotations

import contextlib
import os
import shlex
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import msgspec

from yurt.backends import scripts
from yurt.backends.answers import ChangedFiles, CodeParcel, Observed, Placed, Preview
from yurt.backends.job import module, script
from yurt.backends.shell import ownership
from yurt.errors import RefusedError, UnreachableError, YurtError
from yurt.model import layout
from yurt.model.facts import Facts
from yurt.model.run import Plan, Resources, RunRef
from yurt.model.site_words import whole
from yurt.transport.base import Answer, Host, refusal

if TYPE_CHECKING:
    from yurt.backends.shell.claims import ShellClaims
    from yurt.backends.shell.code import ShellCode
    from yurt.backends.shell.envs import ShellEnvs
    from yurt.backends.shell.exec import ShellExec
    from yurt.backends.shell.files import ShellFiles
    from yurt.backends.shell.forward import ShellForward
    from yurt.backends.shell.workspaces import ShellWorkspaces
    from yurt.model.facts import Account
    from yurt.model.live import Live, LiveNode
    from yurt.model.secrets import Shares
    from yurt.model.storage import StorageReport, TierPlace, TierUse
    from yurt.model.waiting import EndedJob, WaitingJob
    from yurt.model.where import Forecast, Question

INCOMPLETE, NO_GIT, NO_BASE = 45, 46, 47
"""Exit codes of the script that receives code."""

SUBMIT_FAILED = 8
"""Exit code of the script if the job could not be submitted."""

LONGEST_TEXT = 20_000
"""Bytes of a file up to which it is sent as a part of the script, not of its input."""

DISCARD = '[ -e "$1/@WINNER@" ] || [ -e "$1/@WINNER@.d" ] || [ -e "$1/@TASKS@" ] || rm -rf -- "$1"'
DROP_SHARES = 'for each; do rm -f -- "$each"/@SECRET@*; done'


class ShellBackend(ABC):
    """A backend that is its own `runs`; its other capabilities are created on first use."""

    scheduler = ""
    """The scheduler that may not respond although the host does."""

    def __init__(self, host: Host) -> None:
        self.host = host

    @property
    def name(self) -> str:
        return self.host.name

    def silent_since(self, part: str = "") -> float | None:
        return self.host.silent_since(part)

    def gave_up(self, part: str = "") -> bool:
        return self.host.gave_up(part)

    @property
    def runs(self) -> ShellBackend:
        return self

    @property
    def site(self) -> ShellBackend:
        return self

    @cached_property
    def files(self) -> ShellFiles:
        from yurt.backends.shell.files import ShellFiles

        return ShellFiles(self.host)

    @cached_property
    def code(self) -> ShellCode:
        from yurt.backends.shell.code import ShellCode

        return ShellCode(self.host)

    @cached_property
    def exec(self) -> ShellExec:
        from yurt.backends.shell.exec import ShellExec

        return ShellExec(self.host)

    @cached_property
    def forward(self) -> ShellForward:
        from yurt.backends.shell.forward import ShellForward

        return ShellForward(self.host)

    @cached_property
    def claims(self) -> ShellClaims:
        from yurt.backends.shell.claims import ShellClaims

        return ShellClaims(self.host)

    @cached_property
    def envs(self) -> ShellEnvs:
        from yurt.backends.shell.envs import ShellEnvs

        return ShellEnvs(self.host)

    @cached_property
    def workspaces(self) -> ShellWorkspaces:
        from yurt.backends.shell.workspaces import ShellWorkspaces

        return ShellWorkspaces(self.host)

    @abstractmethod
    def launcher(self) -> str:
        """Return the sh functions `find_job` and `launch` for this kind of context."""

    @abstractmethod
    def options(self, plan: Plan) -> list[str]:
        """Return the arguments of `launch`."""

    @abstractmethod
    def as_typed(self, plan: Plan) -> str:
        """Return the command that submits job.sh by hand, in the run folder."""

    @abstractmethod
    def check(self, resources: Resources, facts: Facts | None, folder: str) -> list[str]: ...

    @abstractmethod
    def observe(self, runs: Sequence[RunRef], since: bytes = b"", running: str = "") -> Observed: ...

    @abstractmethod
    def cancel(self, run: RunRef) -> str: ...

    @abstractmethod
    def cancel_runs(self, runs: Sequence[RunRef]) -> dict[str, str]: ...

    @abstractmethod
    def cancel_tasks(self, sweep: RunRef) -> dict[int, str]: ...

    @abstractmethod
    def look(self, accounts: Sequence[Account]) -> Live: ...

    @abstractmethod
    def forecast(self, accounts: Sequence[Account], question: Question) -> Forecast: ...

    def storage(self, places: Sequence[TierPlace], report: str = "", own: Sequence[str] = ()) -> StorageReport:
        from yurt.backends.shell import storage

        mark = f"yurt-{os.urandom(8).hex()}"
        answer = self.host.run(storage.script(), mark, report, *own, stdin=storage.rows(places), timeout=180)
        if answer.code:
            raise self.failure(answer)
        with self.host.reading():
            return storage.read(mark, answer.text, places)

    def next_start(self, _plan: Plan) -> str:
        """Return the command in job.sh that submits a later start; empty if the script itself continues."""
        return ""

    def preview(self, plan: Plan) -> Preview:
        return Preview(self.as_typed(plan), self._files(plan))

    def _files(self, plan: Plan, *, head: bool = False) -> dict[str, bytes]:
        """Return the files of a run; `head`: of job.sh only what is not the same for every run."""
        job = script.head(plan, submitted_as=self.as_typed(plan), next_start=self.next_start(plan))
        return {
            layout.RUN: msgspec.json.encode(plan.run),
            layout.PLAN: msgspec.json.encode(plan),
            layout.JOB: (job if head else job + script.below_the_head()).encode(),
            layout.DATA: script.data(plan),
            **_own_values(plan),
        }

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
        own, purpose = {layout.CALLS: calls} if calls else {}, module.needed(plan.run)
        files = {**self._files(plan, head=True), **own, f"node/{module.name(purpose)}": module.parcel(purpose)}
        texts = {name: each for name, each in files.items() if _fits_in_script(each) and not name.startswith("node/")}
        streamed = {name: each for name, each in files.items() if name not in texts}
        words = [f"={len(each)} {name}" for name, each in texts.items()]
        words += [f"{len(each)} {name}" for name, each in streamed.items()]
        sizes = " ".join([str(len(code.content)), *words])
        apart = [] if shares is None else [shares.folder, shares.environment]
        folder = plan.run.folder.removeprefix(f"{plan.project_folder}/")
        arguments = [plan.project_folder, folder, plan.run.code.tree, code.kind, code.base, sizes, nonce]
        arguments.append(tasks or ("" if start == 1 else str(start)))
        arguments.append(" ".join(str(len(each)) for each in apart))
        mode = "hold" if building else "pack" if plan.setup.unpack else "check"
        arguments.append(f"{mode}:{plan.setup.env}" if plan.setup.env else "")
        content = b"".join([*apart, code.content, *streamed.values()])
        receiver = scripts.receiver() if plan.run.code.tree else scripts.text("unchanged.sh")
        mark = f"yurt-{os.urandom(8).hex()}" if room is not None else ""
        asked = "" if room is None else _ask_room(mark, room)
        rest = f"job_rest() {{ printf %s {shlex.quote(script.below_the_head())}; }}\n"
        text = script.gate() + receiver + self.launcher() + rest + script.placer()
        used = script.used(plan)
        held = plan if start == 1 else plan.later()
        answer = ownership.run(
            self.host,
            [plan.run.folder, *script.elsewhere(plan)],
            text,
            *arguments,
            *self.options(held),
            also=used,
            make=True,
            stdin=content,
            timeout=600,
            first=asked + _file_printer(texts),
            ahead=True,
            part="" if code.content else self.scheduler,
        )
        if answer.code == NO_GIT:
            return Placed(needs=["plain"])
        if answer.code == NO_BASE:
            return Placed(base_missing=True)
        if answer.code:
            raise self.failure(answer)
        with self.host.reading():
            if room is None:
                return read_placed(answer.text, sweep=bool(tasks))
            before, _, output = answer.text.partition(f"\n{mark} placed\n")
            return msgspec.structs.replace(read_placed(output, sweep=bool(tasks)), room=_read_room(mark, before, room))

    def hold(self, jobs: Sequence[str]) -> None:  # noqa: B027
        """Do nothing: there is no scheduler."""

    def release(self, jobs: Sequence[str]) -> None:  # noqa: B027
        """Do nothing: there is no scheduler."""

    def release_synced(self, jobs: Sequence[str]) -> None:  # noqa: B027
        """Do nothing: there is no scheduler."""

    def forget_sync(self, jobs: Sequence[str]) -> None:  # noqa: B027
        """Do nothing: there is no scheduler."""

    def nodes(self) -> list[LiveNode]:
        return []

    def look_at(self, job: str, accounts: Sequence[Account]) -> tuple[Live, WaitingJob | None]:
        del job
        return self.look(accounts), None

    def look_back(self, job: str, node: str) -> EndedJob:
        from yurt.model.waiting import EndedJob

        del job, node
        return EndedJob()

    def extend(self, job: str, minutes: int) -> None:
        del job, minutes
        raise RefusedError(f"{self.host.name} has no scheduler that could let a run run longer", code="impossible")

    def allow_any_node(self, job: str) -> None:  # noqa: B027
        """Do nothing: there is no scheduler."""

    def discard(self, run: RunRef) -> None:
        with contextlib.suppress(YurtError):
            ownership.run(self.host, [run.folder], layout.fill_in(DISCARD), run.folder)

    def drop_shares(self, folders: Sequence[str]) -> None:
        with contextlib.suppress(YurtError):
            ownership.run(self.host, folders, layout.fill_in(DROP_SHARES), *folders)

    def failure(self, answer: Answer) -> YurtError:
        """Return the error for a failed submission."""
        if answer.code == INCOMPLETE and "No space" not in answer.errors and "quota" not in answer.errors.lower():
            return UnreachableError(
                f"{self.host.name}: the upload of the run is incomplete",
                code="connection-lost",
                hint="run the command again; it is safe to retry",
            )
        if answer.code == SUBMIT_FAILED:
            return self.submit_failure(answer.errors)
        return refusal(self.host.name, "cannot submit the run", answer.errors)

    def submit_failure(self, errors: str) -> YurtError:
        """Return the error for an uploaded run whose job could not be submitted."""
        return RefusedError(f"{self.host.name}: cannot start the run: {errors}", code="site-refused")


def _ask_room(mark: str, tier: TierPlace) -> str:
    """Return the first lines of a submission, which print how full a tier is. They read nothing of its input."""
    name, path = shlex.quote(tier.name), shlex.quote(tier.path)
    calls = f"tier_use {name} {path} < /dev/null\nuser_quotas < /dev/null\nsection placed\n"
    return scripts.text("tier_use.sh") + f"mark={shlex.quote(mark)}\n{calls}"


def _read_room(mark: str, text: str, tier: TierPlace) -> TierUse:
    from yurt.backends.shell import storage

    (found,) = storage.uses(storage.sections(mark, text), [tier])
    return found


def read_placed(text: str, *, sweep: bool) -> Placed:
    """Parse the output of place.sh."""
    lines = [line for line in text.splitlines() if line]
    changed = [line.split(" ", 2)[1:] for line in lines if line.startswith("changed ")]
    building = "building" in lines
    lines = [line for line in lines if not line.startswith("changed ") and line != "building"]
    files = ChangedFiles([name for _count, name in changed], whole(changed[0][0])) if changed else ChangedFiles()
    word, _, rest = (lines or [""])[0].partition(" ")
    if word == "need-env":
        return Placed(needs_env=True, env_change=rest, changed=files)
    if word == "need":
        return Placed(needs=lines[1:], changed=files)
    if word == "started":
        return Placed(winner=rest, job=rest.partition(".")[2], changed=files)
    if sweep:
        words = [line.split() for line in lines]
        groups = {line[2]: line[1] for line in words if len(line) == 3 and line[0] == "submitted"}
        return Placed(groups=groups, changed=files, building=building)
    return Placed(job=rest, changed=files, building=building)


def _fits_in_script(content: bytes) -> bool:
    """Whether a file can be a quoted text in a script, in every shell and locale."""
    return len(content) < LONGEST_TEXT and content.isascii() and b"\0" not in content


def _file_printer(texts: Mapping[str, bytes]) -> str:
    """Return a function that prints one of these files."""
    cases = (f"{name}) printf %s {shlex.quote(each.decode())} ;;\n" for name, each in texts.items())
    return f"yurt_file() {{ case $1 in\n{''.join(cases)}esac; }}\n"


def _own_values(plan: Plan) -> dict[str, bytes]:
    if not plan.run.tasks:
        return {layout.PARAMS: script.params(plan)}
    sets, offsets = script.sets(plan)
    return {layout.SETS: sets, layout.OFFSETS: offsets}


def read_gates(text: str) -> dict[int, str]:
    """Parse the contents of the gates of tasks: lines with a task number and the content."""
    pairs = (line.partition(" ") for line in text.splitlines())
    return {whole(number): winner for number, _, winner in pairs}
