"""`yurt home sync [CONTEXT…]`: sync the homes now."""

from __future__ import annotations

import sys
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING

import click

from yurt.cli import app, render
from yurt.cli.app import context_names, verb

if TYPE_CHECKING:
    from yurt.homes.guard import Survey
    from yurt.homes.home_sync import Plan
    from yurt.homes.outcomes import Outcome
    from yurt.model.progress import Event

EXAMPLES = [
    "yurt home sync alpha beta",
    "yurt home sync",
    "yurt home sync alpha --folder ~/homes",
    "yurt home sync alpha beta --hub alpha",
    "yurt home sync --watch --interval 5m",
]


@verb(examples=EXAMPLES, context_help="")
@click.argument("names", nargs=-1, metavar="[CONTEXT]...", shell_complete=context_names)
@click.option(
    "--hub",
    metavar="NAME",
    default="",
    shell_complete=context_names,
    help="The place in the middle: a context whose login host reaches the others, or local (default).",
)
@click.option("--folder", metavar="DIR", default="", help="The folder of this machine (default: ~/yurt-home).")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation, also not of a large deletion.")
@click.option(
    "--refill",
    metavar="PLACE",
    default="",
    shell_complete=context_names,
    help="If this place has lost all its files, copy them from another one again.",
)
@click.option("--watch", "repeat", is_flag=True, help="Sync again and again until Ctrl-C.")
@click.option(
    "--interval", metavar="TIME", default="", help="With --watch, the time between two syncs: 30s, 5m (default: 60s)."
)
def sync(names: tuple[str, ...], hub: str, folder: str, *, yes: bool, refill: str, repeat: bool, interval: str) -> int:
    """Sync the homes now.

    CONTEXT is a context whose home, on its login host, is synced with a folder of this machine, and through it with
    the other homes. A new one is added after you confirmed what would be copied. Without CONTEXT, all homes are synced.
    They are listed in homes.yaml in yurt's configuration folder.

    Changes are copied both ways. A file that changed on both sides is a conflict: see `yurt home conflicts`. Versions
    that are replaced or deleted go to a backup: see `yurt home backups`. `yurt home profile` shows which files are left
    out.

    A deletion of more than 100 files, or of more than a tenth of a home of at least 200, is copied only after you
    confirmed it; without a terminal it is left out, and the rest is synced. A home that has lost all its files is not
    synced: --refill copies them from another home again.

    With --watch, the pause between two syncs grows to 10 minutes while nothing changes. A job that waits for a home
    sync, see `yurt run --sync`, starts a sync at once.

    The exit code is 1 if there are conflicts or files that could not be synced, 4 if a place cannot be reached, and 5
    if another sync is running or a place refuses.
    """
    from pathlib import Path

    from yurt.cli.progress import watching
    from yurt.homes import home_sync as verbs

    app.enable_gc()
    seconds = verbs.read_interval(interval, repeat=repeat)
    planned = verbs.plan(names, hub=hub, folder=str(Path(folder).expanduser().absolute()) if folder else "")
    verbs.check_refill(planned, refill)
    asks = bool(planned.new or planned.first) and not yes
    with ExitStack() as stack:
        watches = [stack.enter_context(watching(asks=asks))]

        def confirmed(plan: Plan, survey: Survey) -> bool:
            agreed = _confirmed(plan, survey, yes=yes)
            if agreed and asks:  # now a bar overwrites no prompt
                watches.append(stack.enter_context(watching()))
            return agreed

        def watch(event: Event) -> None:
            watches[-1](event)

        found = verbs.sync(planned, confirmed, agree=lambda _each: yes, refill=refill, watch=watch)
    code = render.result(found, lambda: print_outcomes(found.data))
    if not yes and _agrees(found.data):
        app.current().warnings.clear()
        with watching() as progress:
            again = verbs.delete_too(planned, found.data, watch=progress)
        code = render.result(again, lambda: print_outcomes(again.data))
    if not repeat:
        return code
    app.current().warnings.clear()
    verbs.repeat(planned.only, seconds, lambda found: _print_round(found.data))
    return 0


def _agrees(done: list[Outcome]) -> bool:
    """Ask about the large deletions that a sync has left out. False without a terminal, or if there are none."""
    others = dict.fromkeys(deletion.other for each in done for deletion in each.deletions)
    if not others or not _on_terminal():
        return False
    where = render.plain(" and ".join(others))
    return click.confirm(f"delete these files on {where}, too? Backups are kept.", default=False, err=True)


def _on_terminal() -> bool:
    """Whether there is a user to ask."""
    return not app.current().json and sys.stdin.isatty() and sys.stderr.isatty()


def _print_round(outcomes: list[Outcome]) -> None:
    """Print one line about a round of --watch: what each pair did."""
    if app.current().json:
        render.stream("home-sync", outcomes)
        return
    if app.current().quiet and not any(each.code for each in outcomes):
        return
    jobs = [job for each in outcomes for job in each.released]
    texts = [f"{each.spoke}: {_summary(each)}{_first_path(each)}" for each in outcomes]
    texts += [f"released job {job}" for job in jobs]
    print(render.plain(f"{time.strftime('%H:%M:%S')}  {'; '.join(texts)}"), flush=True)


def _first_path(each: Outcome) -> str:
    """Return which path was not synced, for a line; empty if there is none."""
    from yurt.homes import gate

    return f" ({gate.problem(each)})" if each.code < 3 and (each.failed or each.deletions) else ""


def _confirmed(planned: Plan, survey: Survey, *, yes: bool) -> bool:
    """Show what the first sync would copy; return whether the user agrees. False without a terminal."""
    if yes:
        return True
    if not _on_terminal():
        return False
    from yurt.homes import guard_text as home_guard

    home_guard.show(survey)
    new = ", ".join(planned.new or planned.first)
    return click.confirm(f"keep these homes in sync ({render.plain(new)})?", default=False, err=True)


def print_outcomes(outcomes: list[Outcome]) -> None:
    """Print one line per pair, and what the user should know."""
    from yurt.homes import deletions

    for each in outcomes:
        text = _summary(each)
        print(render.plain(text if text.startswith((f"{each.spoke}: ", f"{each.spoke} ")) else f"{each.spoke}: {text}"))
        for job in each.released:
            print(render.plain(f"  released job {job}"))
        for job in each.left:
            print(render.plain(f"  job {job}"))
        lines = [f"not synced: {failed.path}: {failed.why}" for failed in each.failed if each.code]
        lines = [deletions.text(deletion) for deletion in each.deletions] + lines
        for line in lines[:5]:
            print(render.plain(f"  {line}"))
        if len(lines) > 5:
            print(f"  and {len(lines) - 5} more")
        if each.hint:
            print(render.plain(f"  hint: {each.hint}"))


def _summary(each: Outcome) -> str:
    if each.problem:
        return each.problem
    counts = [
        f"{render.count(each.to_hub, 'change')} to {each.hub}" if each.to_hub else "",
        f"{render.count(each.to_spoke, 'change')} to {each.spoke}" if each.to_spoke else "",
        f"{render.count(each.deleted, 'file')} deleted" if each.deleted else "",
        render.amount(each.size) if each.size else "",
    ]
    none = [] if each.failed else ["no changes"]
    text = ", ".join([*(filter(None, counts)), *([] if any(counts) else none), f"{each.seconds:.1f} s"])
    if each.conflicts:
        text += f"; {render.count(len(each.conflicts), 'conflict')}: see `yurt home conflicts`"
    if each.deletions:
        text += f"; {render.count(len(each.deletions), 'large deletion')} to confirm"
    if each.failed:
        text += f"; {render.count(len(each.failed), 'path')} not synced"
    return text
