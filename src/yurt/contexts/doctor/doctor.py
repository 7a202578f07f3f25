"""doctor: examine this machine and the contexts, fix what the user agrees to, write a bug report."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import msgspec

from yurt.config import contexts, paths
from yurt.contexts.doctor import contexts as sites
from yurt.contexts.doctor import fixes, machine, report
from yurt.contexts.doctor.finding import Examined, Finding, Fix
from yurt.contexts.fan_out import side_by_side
from yurt.errors import RefusedError, UserError, YurtError
from yurt.model.context import Context
from yurt.model.progress import Event, Watch, unwatched
from yurt.model.result import Result


class Diagnosis(msgspec.Struct, frozen=True, kw_only=True):
    """What doctor found: this machine first, then each context."""

    machine: list[Finding]
    """Checks of this machine."""
    contexts: list[Examined]
    """Checks of each context."""
    faults: int
    """Number of faults; the exit code is 1 if there is one."""
    warnings: int
    """Number of warnings."""
    report: str = ""
    """The file of the bug report, if one was written."""

    @property
    def groups(self) -> list[Examined]:
        return [Examined(context="", findings=self.machine), *self.contexts]


def doctor(
    names: Sequence[str] = (), *, to: Path | None = None, write: bool = False, watch: Watch = unwatched
) -> Result[Diagnosis]:
    """Examine this machine and these contexts, by default all. The exit code is 1 if there is a fault.

    `write`: also write a bug report, to the file `to` or to the data folder. Raises NotFoundError for an unknown name;
    a context that cannot be reached is a fault.
    """
    chosen = [contexts.named(name) for name in names] if names else _all()
    if to is not None:
        _check_file(to)
    watch(Event("examining this machine"))
    here = machine.examine()
    found: dict[str, Examined] = {}

    def examine(context: Context) -> None:
        found[context.name] = sites.examine(context)
        watch(Event(f"examined {context.name}", len(found), len(chosen)))

    if chosen:
        watch(Event(f"examining {', '.join(each.name for each in chosen)}", 0, len(chosen)))
        side_by_side(examine, chosen)
    groups = [here, *(found[each.name] for each in chosen)]
    faults = sum(each.count("fault") for each in groups)
    data = Diagnosis(
        machine=here.findings,
        contexts=groups[1:],
        faults=faults,
        warnings=sum(each.count("warning") for each in groups),
        report=str(_report(groups, to)) if write else "",
    )
    return Result(kind="doctor", data=data, exit_code=1 if faults else 0)


def _all() -> list[Context]:
    try:
        return [each for each in contexts.load(contexts.default_file()).contexts.values() if each.type != "kubernetes"]
    except YurtError:  # a finding about this machine
        return []


def _check_file(file: Path) -> None:
    """UserError if a report would replace something else, or if the user means a context."""
    text = str(file)
    if any(text == each.name for each in _all()):
        raise UserError(
            f"--report: '{text}' is a context, not a file",
            code="usage",
            hint=f"use `yurt doctor {text} --report`",
        )
    if not os.path.lexists(file):
        return
    try:
        ours = file.is_file() and file.read_text(errors="replace").startswith(report.TITLE)
    except OSError as error:
        raise RefusedError(f"cannot read {file}: {error.strerror}", code="cannot-write") from None
    if not ours:
        raise UserError(
            f"--report: {file} exists and is not a bug report",
            code="usage",
            hint="use another file: `--report FILE`",
        )


def _report(groups: Sequence[Examined], to: Path | None) -> Path:
    last = paths.data_home() / "bug-report.txt"
    try:
        traceback = last.read_text(errors="replace")
    except OSError:
        traceback = ""
    try:
        return report.write(to, report.text(groups, traceback))
    except OSError as error:
        file = to if to is not None else report.default_file()
        raise RefusedError(
            f"cannot write {file}: {error.strerror}", code="cannot-write", hint="use another file: `--report FILE`"
        ) from None


def fixable(found: Diagnosis) -> list[Fix]:
    """Return the fixes of all findings, each once."""
    listed = [finding.fix for group in found.groups for finding in group.findings if finding.fix is not None]
    return [fix for at, fix in enumerate(listed) if fix not in listed[:at] and not _same_file(fix, listed[:at])]


def _same_file(fix: Fix, earlier: Sequence[Fix]) -> bool:
    """Whether an earlier fix changes the same file: the next call of doctor offers this one."""
    return bool(fix.file) and any(each.file == fix.file for each in earlier)


preview = fixes.preview
apply = fixes.apply
outcome = fixes.outcome
use_alias = fixes.use_alias
