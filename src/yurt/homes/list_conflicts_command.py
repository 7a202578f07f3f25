"""`yurt home conflicts [PATH…]`: show the conflicting versions of files in the homes, and resolve them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from yurt.cli import app, render
from yurt.cli.app import verb
from yurt.errors import UserError

if TYPE_CHECKING:
    from yurt.homes.conflicts import Choice, Conflict
    from yurt.homes.list_conflicts import Found, HomeConflicts, ShownConflict
    from yurt.homes.versions import HomeVersion

EXAMPLES = [
    "yurt home conflicts",
    "yurt home conflicts project/notes.txt",
    "yurt home conflicts --keep alpha project",
    "yurt home conflicts --newer --yes",
]


@verb(examples=EXAMPLES, context_help="")
@click.argument("paths", nargs=-1, metavar="[PATH]...")
@click.option("--keep", metavar="PLACE", default="", help="Keep the versions of a place.")
@click.option("--newer", is_flag=True, help="Keep the versions that were changed last; never a deletion.")
@click.option("--both", is_flag=True, help="Keep both: that of the hub, and the other one under a name with its place.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
def conflicts(paths: tuple[str, ...], keep: str, newer: bool, both: bool, yes: bool) -> int:
    """Show conflicting versions of files, and resolve them.

    A path is in conflict if it changed on two places since their last sync. A sync leaves both versions as they are.
    PATH is a file or a folder, relative to the home; with PATH, also shows how text files differ.

    On a terminal, asks for each conflict which version to keep. With --keep, --newer or --both, resolves all conflicts,
    or those of PATH. Only these paths are synced. The version that is not kept goes to a backup, see
    `yurt home backups`.
    """
    from yurt.cli.progress import watching_late
    from yurt.homes import list_conflicts as verbs

    if (keep != "") + newer + both > 1:
        raise UserError("--keep, --newer and --both cannot be combined", code="usage", hint="use one of them")
    rule = bool(keep or newer or both)
    if yes and not rule:
        raise UserError("--yes needs a rule", code="usage", hint="add `--keep PLACE`, `--newer` or `--both`")
    with watching_late() as watch:
        found = verbs.find(paths, diffs=bool(paths) and not rule, watch=watch)
    terminal = not app.current().json and sys.stdin.isatty() and sys.stderr.isatty()
    if rule:
        chosen = verbs.choices(found, keep=keep, newer=newer, both=both)
        if chosen and not yes:
            _confirm(found, chosen, terminal=terminal)
    elif terminal and sys.stdout.isatty() and found.open:
        _print(found.data)
        chosen = _ask_each(found)
    else:
        return render.result(found, lambda: _print(found.data), requested=True)
    if not chosen:
        return render.result(found, lambda: print("nothing was resolved" if found.open else "no conflicts"))
    app.current().warnings += found.warnings
    with watching_late() as watch:
        done = verbs.resolve(found, chosen, watch=watch)
    return render.result(done, lambda: _print_resolved(done.data))


def _print(found: HomeConflicts) -> None:
    if not found.conflicts:
        print("no conflicts")
        return
    _table(found.conflicts)
    for each in found.conflicts:
        for diff in each.diffs:
            sys.stdout.write("\n")
            sys.stdout.flush()
            render.verbatim(diff.encode())
    print()
    deleted = sum(each.deletion for each in found.conflicts)
    changed = render.count(len(found.conflicts) - deleted, "path") + " changed on two places since their last sync"
    parts = [changed if deleted < len(found.conflicts) else ""]
    parts.append(
        f"{render.count(deleted, 'path')} deleted with many files, so you have to confirm it" if deleted else ""
    )
    print(f"{', and '.join(filter(None, parts))}; each place keeps its own version until you choose")
    here = "; `local` is this machine" if any("local" in each.versions for each in found.conflicts) else ""
    print(f"resolve with `yurt home conflicts --keep PLACE`, `--newer` or `--both`{here}")


def _table(conflicts: Sequence[ShownConflict]) -> None:
    places = list(dict.fromkeys(place for each in conflicts for place in each.versions))
    rows = [[each.path, *(_cell(each.versions.get(place), modes=each.modes) for place in places)] for each in conflicts]
    render.table(["path", *(f"on {place}" for place in places)], rows)


def _cell(version: HomeVersion | None, *, modes: bool) -> str:
    """Return a version in a few words: 1.2 KB, 2026-11-17 03:55:12. With `modes`, only its mode differs."""
    if version is None:
        return ""
    if modes:
        return f"{version.kind}, mode {version.mode}"
    words = {
        "deleted": "deleted",
        "unknown": "not reachable",
        "link": f"link → {version.target}",
        "folder": f"folder, {render.count(version.files, 'file')}",
    }
    return words.get(version.kind) or f"{render.amount(version.size)}, {render.moment(version.time)}"


def _confirm(found: Found, chosen: Sequence[Choice], *, terminal: bool) -> None:
    """Ask the user; UserError without a terminal. Aborts if the answer is no."""
    if not terminal:
        raise UserError("nothing was resolved: there is no terminal to ask on", code="usage", hint="add `--yes`")
    kept = {each.conflict.path: each for each in chosen}
    _table([shown for shown, each in zip(found.data.conflicts, found.open, strict=True) if each.path in kept])
    for each in chosen:
        print(render.plain(f"{each.conflict.path}: keep {_choice(each)}"))
    if not click.confirm(f"resolve {render.count(len(chosen), 'conflict')}?", default=False, err=True):
        raise click.Abort


def _choice(choice: Choice) -> str:
    return "both versions" if choice.both else f"the version on {choice.keep}"


def _ask_each(found: Found) -> list[Choice]:
    """Ask for each conflict which version to keep."""
    from yurt.homes import conflicts as rules

    chosen: list[Choice] = []
    for number, each in enumerate(found.open, 1):
        one = [each]
        answers = [*each.versions, "newer", "both", "diff", "skip", "quit"]
        print(render.plain(f"\n{number}/{len(found.open)} {each.path}"), file=sys.stderr)
        while True:
            answer = click.prompt("keep", type=click.Choice(answers), default="skip", err=True)
            if answer != "diff":
                break
            _print_diff(found, each)
        if answer == "quit":
            break
        if answer in each.versions:
            chosen += rules.keep(one, answer)
        elif answer != "skip":
            chosen += rules.both(one) if answer == "both" else rules.newer(one)
    return chosen


def _print_diff(found: Found, conflict: Conflict) -> None:
    from yurt.homes import list_conflicts as verbs

    diffs = verbs.diff(found.homes, conflict)
    for diff in diffs:
        render.verbatim(diff.encode())
    if not diffs:
        print("not two text files of at most 1 MB", file=sys.stderr)


def _print_resolved(done: HomeConflicts) -> None:
    for each in done.resolved:
        beside = f"; the other one is now {', '.join(each.beside)}" if each.beside else ""
        print(render.plain(f"{each.path}: kept the version on {each.kept}{beside}"))
    if done.resolved:
        print("versions that were replaced are in `yurt home backups`")
    if done.conflicts:
        print(f"{render.count(len(done.conflicts), 'conflict')} left")
