"""`yurt doctor [CONTEXT…]`: find out what is wrong with this machine and the contexts, and what to do about it."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from yurt.cli import app, render
from yurt.cli.app import context_names, verb

if TYPE_CHECKING:
    from yurt.contexts.doctor.doctor import Diagnosis
    from yurt.contexts.doctor.finding import Examined, Finding, Fix

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
@click.argument("contexts", nargs=-1, metavar="[CONTEXT]...", shell_complete=context_names)
@click.option("--fix", is_flag=True, help="Offer to fix what yurt can fix, one question for each change.")
@click.option("--yes", is_flag=True, help="With --fix: do not ask, and leave out fixes that prompt.")
@click.option(
    "--report",
    metavar="[FILE]",
    is_flag=False,
    flag_value="",
    default=None,
    help="Also write a bug report without names and secrets.",
)
def doctor(contexts: tuple[str, ...], fix: bool, yes: bool, report: str | None) -> int:
    """Check this machine and your contexts for problems.

    Checks programs, keys, yurt's files and each CONTEXT (default: all): login, clock, disk space, storage folder,
    Slurm, software. Prints only problems; -v prints every check. Changes nothing without --fix, which shows each
    change and asks. The exit code is 1 if there is a fault, and 0 if there are only warnings.
    """
    from yurt.cli.progress import watching
    from yurt.contexts.doctor import doctor as verbs

    now = app.current()
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
        found = verbs.doctor(contexts, to=Path(report) if report else None, write=report is not None, watch=watch)
    code = render.result(found, lambda: _print(found.data), requested=True)
    if fix:
        _fix_all(found.data, asks=asks and not yes)
    return code


def _print(found: Diagnosis) -> None:
    now = app.current()
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
        render.fact("remedy" if app.plain() else " " * room, each.remedy, room)


def _line(result: str, text: str) -> None:
    sign, style = SIGNS[result]
    word = result if app.plain() else sign
    on, off = render.codes(style) if render.colours() else ("", "")
    room = _room()
    padding = len(on) + len(off)
    render.fact(f"  {on}{word}{off}".ljust(room + padding), text, room)


def _room() -> int:
    return 11 if app.plain() else 4


def _fix_all(found: Diagnosis, *, asks: bool) -> None:
    from yurt.contexts.doctor import doctor as verbs
    from yurt.errors import YurtError

    fixes = verbs.fixable(found)
    if not fixes and not app.current().quiet:
        print("nothing that yurt can fix", file=sys.stderr)
    for fix in fixes:
        if fix.prompts and not asks:
            _say(f"left out, because it prompts: {fix.line}")
            continue
        print(file=sys.stderr)
        if fix.shows:
            _say(fix.shows)
        _say(verbs.preview(fix))
        if asks and not click.confirm(f"{render.plain(fix.title)}?", default=False, err=True):
            continue
        try:
            verbs.apply(fix)
            _say(verbs.outcome(fix))
            _offer_alias(fix, asks=asks)
        except YurtError as error:
            render.error(error, as_json=False)


def _offer_alias(fix: Fix, *, asks: bool) -> None:
    from yurt.contexts.doctor import doctor as verbs

    if fix.context and asks:
        question = f"use the alias as slurm_url of context '{fix.context}'?"
        if click.confirm(question, default=False, err=True):
            verbs.use_alias(fix.context)
            _say("done")


def _say(text: str) -> None:
    print(render.escaped(text), file=sys.stderr)
