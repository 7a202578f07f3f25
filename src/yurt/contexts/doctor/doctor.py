"""doctor: examine this machine and the contexts, fix what the user agrees to, write a bug report."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from yurt.cli import call, render
from yurt.cli.ask import confirm
from yurt.cli.completers import context_names
from yurt.cli.declare import argument, option, verb
from yurt.config import contexts, paths
from yurt.contexts.doctor import contexts as sites
from yurt.contexts.doctor import fixes, machine, report
from yurt.contexts.doctor.finding import Examined, Finding, Fix
from yurt.contexts.fan_out import side_by_side
from yurt.errors import RefusedError, UserError, YurtError
from yurt.model.context import Context
from yurt.model.progress import Event, Watch, unwatched
from yurt.model.result import Result

if TYPE_CHECKING:
    from yurt.contexts.doctor.finding import Examined, Finding, Fix


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


SIGNS = {"ok": ("✓", "green"), "warning": ("!", "yellow"), "fault": ("✗", "red"), "skipped": ("-", "dim")}


@verb(
    examples=[
        "yurt doctor",
        "yurt doctor big -v",
        "yurt doctor --fix",
        "yurt doctor --report report.md",
    ],
    context_help="",
)
@argument("contexts", nargs=-1, metavar="[CONTEXT]...", shell_complete=context_names)
@option("--fix", is_flag=True, help="Offer to fix what yurt can fix, one question for each change.")
@option("--yes", is_flag=True, help="With --fix: do not ask, and leave out fixes that prompt.")
@option(
    "--report",
    metavar="[FILE]",
    is_flag=False,
    flag_value="",
    default=None,
    help="Also write a bug report without names and secrets.",
)
def doctor_command(contexts: tuple[str, ...], fix: bool, yes: bool, report: str | None) -> int:
    """Check this machine and your contexts for problems.

    Checks programs, keys, yurt's files and each CONTEXT (default: all): login, clock, disk space, storage folder,
    Slurm, software. Prints only problems; -v prints every check. Changes nothing without --fix, which shows each
    change and asks. The exit code is 1 if there is a fault, and 0 if there are only warnings.
    """
    from yurt.cli.progress import watching

    now = call.current()
    asks = sys.stdin.isatty() and sys.stderr.isatty() and not now.json
    if yes and not fix:
        raise click.UsageError("--yes needs --fix")
    if fix and not (asks or yes):
        from yurt.errors import UserError

        raise UserError(
            "--fix asks before each change, which needs a terminal and is not possible with --json",
            code="usage",
            hint="use `--yes` to agree to all changes",
        )
    with watching() as watch:
        found = doctor(contexts, to=Path(report) if report else None, write=report is not None, watch=watch)
    code = render.result(found, lambda: _print(found.data), requested=True)
    if fix:
        _fix_all(found.data, asks=asks and not yes)
    return code


def _print(found: Diagnosis) -> None:
    now = call.current()
    for at, group in enumerate(found.groups):
        if at:
            print()
        _print_group(group, all_checks=now.verbose > 0)
    faults, warnings = render.count(found.faults, "fault"), render.count(found.warnings, "warning")
    print(f"\n{faults}, {warnings}" + ("" if now.verbose else "; -v shows every check"))
    if found.report:
        print(f"wrote {render.plain(found.report)}; read it before you send it")


def _print_group(group: Examined, *, all_checks: bool) -> None:
    bold = render.codes("bold") if render.colours() else ("", "")
    good = group.count("ok")
    print(f"{bold[0]}{render.plain(group.context) or 'this machine'}{bold[1]}")
    for each in group.findings:
        if all_checks or each.result in ("warning", "fault"):
            _print_finding(each)
    if not all_checks and good:
        _line("ok", f"{render.count(good, 'check')} passed")


def _print_finding(each: Finding) -> None:
    detail = each.detail if len(each.detail) < 300 else f"{each.detail[:300]}…"
    sentence = " ".join((f"{each.text}: {detail}" if detail else each.text).split())
    about = "" if set(each.check.lower().split()) <= set(re.split(r"[\s,:.]+", sentence.lower())) else each.check
    _line(each.result, f"{about}: {sentence}" if about else sentence)
    if each.remedy:
        room = _room() + 2
        render.fact("remedy" if call.plain() else " " * room, each.remedy, room)


def _line(result: str, text: str) -> None:
    sign, style = SIGNS[result]
    word = result if call.plain() else sign
    on, off = render.codes(style) if render.colours() else ("", "")
    room = _room()
    padding = len(on) + len(off)
    render.fact(f"  {on}{word}{off}".ljust(room + padding), text, room)


def _room() -> int:
    return 11 if call.plain() else 4


def _fix_all(found: Diagnosis, *, asks: bool) -> None:
    from yurt.errors import YurtError

    fixes = fixable(found)
    if not fixes and not call.current().quiet:
        print("nothing that yurt can fix", file=sys.stderr)
    for fix in fixes:
        if fix.prompts and not asks:
            _say(f"left out, because it prompts: {fix.line}")
            continue
        print(file=sys.stderr)
        if fix.shows:
            _say(fix.shows)
        _say(preview(fix))
        if asks and not confirm(f"{render.plain(fix.title)}?", default=False):
            continue
        try:
            apply(fix)
            _say(outcome(fix))
            _offer_alias(fix, asks=asks)
        except YurtError as error:
            render.error(error, as_json=False)


def _offer_alias(fix: Fix, *, asks: bool) -> None:

    if fix.context and asks:
        question = f"use the alias as slurm_url of context '{fix.context}'?"
        if confirm(question, default=False):
            use_alias(fix.context)
            _say("done")


def _say(text: str) -> None:
    print(render.escaped(text), file=sys.stderr)
