"""home conflicts: show the conflicting versions of files in the homes, and resolve them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

import click
import msgspec

from yurt.cli import call, render
from yurt.cli.ask import choose, confirm
from yurt.cli.declare import argument, option, verb
from yurt.errors import NotFoundError, RefusedError, UserError
from yurt.homes import conflicts as kept
from yurt.homes import paths as home_paths
from yurt.homes import resolve as resolving
from yurt.homes import versions
from yurt.homes.config import Homes
from yurt.homes.conflicts import Choice, Conflict
from yurt.homes.outcomes import NOT_CONFIRMED, shown
from yurt.homes.versions import HomeVersion
from yurt.model.progress import Event, Watch, unwatched
from yurt.model.result import Result

if TYPE_CHECKING:
    from yurt.homes.conflicts import Choice, Conflict
    from yurt.homes.versions import HomeVersion


class ShownConflict(msgspec.Struct, frozen=True, kw_only=True):
    """A path that changed on several places since their last sync."""

    path: str
    """Relative to the home."""
    why: str
    """The reason, in the words of Unison."""
    versions: dict[str, HomeVersion]
    """The version of each place, the hub first."""
    deletion: bool = False
    """Whether it did not change on two places, but is part of a large deletion that is not confirmed."""
    modes: bool = False
    """Whether only the modes differ."""
    diffs: list[str] = []
    """The differences between the hub's version and each other one, if paths were given and all are text files."""


class ResolvedConflict(msgspec.Struct, frozen=True, kw_only=True):
    """A conflict that was resolved."""

    path: str
    """Relative to the home."""
    kept: str
    """The place whose version is at the path now."""
    beside: list[str] = []
    """The names of the other versions, if both were kept."""


class HomeConflicts(msgspec.Struct, frozen=True, kw_only=True):
    """The open conflicts of the homes, and those that this command resolved."""

    hub: str
    """The place in the middle."""
    conflicts: list[ShownConflict]
    """The open conflicts."""
    resolved: list[ResolvedConflict] = []
    """Those that this command resolved."""


class Found(Result[HomeConflicts], frozen=True, kw_only=True):
    """The conflicts, and what `resolve` needs to resolve them."""

    homes: Homes
    open: list[Conflict]


def find(paths: Sequence[str] = (), *, diffs: bool = False, watch: Watch = unwatched) -> Found:
    """Return the conflicts of the last syncs that both places still have, or those of some paths.

    With `diffs`, also the differences of text files. A place that cannot be reached is a warning.
    """
    homes = home_paths.homes()
    watch(Event("looking at both versions"))
    known, errors = kept.find(homes)
    some = kept.chosen(known, [home_paths.relative(path, homes) for path in paths])
    readable = [_shown(each, diff(homes, each) if diffs else []) for each in some]
    return Found(
        kind="home-conflicts",
        data=HomeConflicts(hub=homes.hub, conflicts=readable),
        warnings=[error.message for error in errors],
        homes=homes,
        open=some,
    )


def diff(homes: Homes, conflict: Conflict) -> list[str]:
    """Return the differences between the hub's version and each other one; nothing for what is not text."""
    places = {place.name: place for place in home_paths.places(homes)}
    found = []
    for name, version in conflict.versions.items():
        if name != conflict.hub and version.kind == conflict.versions[conflict.hub].kind == "file":
            with suppress(NotFoundError):
                text = versions.diff(conflict.path, places[conflict.hub], places[name])
                found.append(text.decode(errors="backslashreplace"))
    return found


def choices(found: Found, *, keep: str = "", newer: bool = False, both: bool = False) -> list[Choice]:
    """Return how to resolve the conflicts by a rule. UserError if the place is unknown or has no part in any."""
    if keep and keep not in found.homes.names:
        names = ", ".join(found.homes.names)
        raise UserError(f"'{keep}' is not one of the places in sync", code="usage", hint=f"the places are: {names}")
    if keep:
        made = kept.keep(found.open, keep)
    else:
        made = kept.both(found.open) if both else kept.newer(found.open) if newer else []
    if keep and found.open and not made:
        others = sorted({name for each in found.open for name in each.versions})
        raise UserError(
            f"{keep} has a part in none of these conflicts: its version is already on {found.homes.hub}",
            code="usage",
            hint=f"name one of: {', '.join(others)}",
        )
    return made


def resolve(found: Found, chosen: Sequence[Choice], *, watch: Watch = unwatched) -> Result[HomeConflicts]:
    """Keep the chosen versions on all places; the others go to dated backups. Only these paths are synced.

    The exit code is 1 if a conflict could not be resolved; a warning says why. RefusedError: a place with one of the
    versions cannot be reached; nothing was changed.
    """
    for each in chosen:
        if each.conflict.unknown:
            raise RefusedError(
                f"'{each.conflict.path}' is not resolved: {each.conflict.unknown[0]} cannot be reached",
                code="site-refused",
                hint="try again when it can",
            )
    done = resolving.resolve(found.homes, chosen, watch=watch)
    resolved: dict[str, ResolvedConflict] = {}
    warnings = []
    for each in chosen:
        path = each.conflict.path
        problem = done.problem(each.conflict)
        if problem:
            warnings.append(f"'{shown(path)}' is not resolved: {problem}")
        else:
            beside = [shown(name) for name in done.beside.get(path, ())]
            resolved[path] = ResolvedConflict(path=shown(path), kept=each.keep, beside=beside)
    left = [_shown(each, []) for each in found.open if each.path not in resolved]
    return Result(
        kind="home-conflicts",
        data=HomeConflicts(hub=found.homes.hub, conflicts=left, resolved=list(resolved.values())),
        warnings=warnings,
        exit_code=1 if warnings else 0,
    )


def _shown(conflict: Conflict, diffs: list[str]) -> ShownConflict:
    safe = {
        place: msgspec.structs.replace(each, target=shown(each.target)) for place, each in conflict.versions.items()
    }
    return ShownConflict(
        path=shown(conflict.path),
        why=conflict.why,
        versions=safe,
        deletion=conflict.why == NOT_CONFIRMED,
        modes=conflict.modes,
        diffs=diffs,
    )


EXAMPLES = [
    "yurt home conflicts",
    "yurt home conflicts project/notes.txt",
    "yurt home conflicts --keep alpha project",
    "yurt home conflicts --newer --yes",
]


@verb(examples=EXAMPLES, context_help="")
@argument("paths", nargs=-1, metavar="[PATH]...")
@option("--keep", metavar="PLACE", default="", help="Keep the versions of a place.")
@option("--newer", is_flag=True, help="Keep the versions that were changed last; never a deletion.")
@option("--both", is_flag=True, help="Keep both: that of the hub, and the other one under a name with its place.")
@option("--yes", is_flag=True, help="Do not ask for confirmation.")
def conflicts_command(paths: tuple[str, ...], keep: str, newer: bool, both: bool, yes: bool) -> int:
    """Show conflicting versions of files, and resolve them.

    A path is in conflict if it changed on two places since their last sync. A sync leaves both versions as they are.
    PATH is a file or a folder, relative to the home; with PATH, also shows how text files differ.

    On a terminal, asks for each conflict which version to keep. With --keep, --newer or --both, resolves all conflicts,
    or those of PATH. Only these paths are synced. The version that is not kept goes to a backup, see
    `yurt home backups`.
    """
    from yurt.cli.progress import watching_late

    if (keep != "") + newer + both > 1:
        raise UserError("--keep, --newer and --both cannot be combined", code="usage", hint="use one of them")
    rule = bool(keep or newer or both)
    if yes and not rule:
        raise UserError("--yes needs a rule", code="usage", hint="add `--keep PLACE`, `--newer` or `--both`")
    with watching_late() as watch:
        found = find(paths, diffs=bool(paths) and not rule, watch=watch)
    terminal = not call.current().json and sys.stdin.isatty() and sys.stderr.isatty()
    if rule:
        chosen = choices(found, keep=keep, newer=newer, both=both)
        if chosen and not yes:
            _confirm(found, chosen, terminal=terminal)
    elif terminal and sys.stdout.isatty() and found.open:
        _print(found.data)
        chosen = _ask_each(found)
    else:
        return render.result(found, lambda: _print(found.data), requested=True)
    if not chosen:
        return render.result(found, lambda: print("nothing was resolved" if found.open else "no conflicts"))
    call.current().warnings += found.warnings
    with watching_late() as watch:
        done = resolve(found, chosen, watch=watch)
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
    if not confirm(f"resolve {render.count(len(chosen), 'conflict')}?", default=False):
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
            answer = choose("keep", answers, default="skip")
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

    diffs = diff(found.homes, conflict)
    for text in diffs:
        render.verbatim(text.encode())
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
