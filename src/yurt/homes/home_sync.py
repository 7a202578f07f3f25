"""home sync: set up which homes are in sync, and sync them."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from yurt.cli import call, render
from yurt.cli.ask import confirm
from yurt.cli.completers import context_names
from yurt.cli.declare import argument, option, verb
from yurt.errors import UserError, YurtError
from yurt.homes import config, deletions, ledger, places, profile, rounds
from yurt.homes import sync as one_sync
from yurt.homes.config import Homes, PlaceSettings
from yurt.homes.deletions import Agree
from yurt.homes.outcomes import Outcome, pair_name, shown
from yurt.homes.places import Place
from yurt.model.context import LOCAL
from yurt.model.progress import Watch, unwatched
from yurt.model.resources import parse_seconds
from yurt.model.result import Result

if TYPE_CHECKING:
    from yurt.homes.guard import Survey
    from yurt.homes.outcomes import Outcome
    from yurt.model.progress import Event


INTERVAL = "60s"
"""The time between two rounds of `--watch`."""

if TYPE_CHECKING:
    from yurt.homes.guard import Survey

Confirm = Callable[["Plan", "Survey"], bool]


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What a sync would do: the homes in sync, and which of them were not in sync before."""

    homes: Homes
    only: list[str]
    new: list[str]
    """Places that were not in homes.yaml."""
    first: list[str]
    """Places that have never been synced."""


def plan(names: Sequence[str], *, hub: str = "", folder: str = "") -> Plan:
    """Return the homes to sync: those of homes.yaml, with the named contexts added. Changes nothing.

    NotFoundError: a context does not exist. UserError: there is nothing to sync, or the hub cannot be changed.
    """
    saved = config.load()
    homes = saved or Homes()
    if folder:
        _check_folder(folder)
    for name in (*names, *([hub] if hub else [])):
        if name != LOCAL.name:
            _ = Place(name, homes).host  # NotFoundError or UserError if it is not a login host
    if hub and saved is not None and hub != saved.hub:  # the old hub stays one of the places
        homes = msgspec.structs.replace(homes, places=_with(homes.places, [saved.hub]))
    homes = msgspec.structs.replace(
        homes,
        hub=hub or homes.hub,
        folder=folder or homes.folder,
        places=_with(homes.places, [name for name in names if name not in (hub or homes.hub,)]),
    )
    if len(homes.names) < 2:
        raise UserError("there are no homes to sync", code="usage", hint="name contexts: `yurt home sync CONTEXT...`")
    before = [] if saved is None else saved.names
    known = ledger.read()
    moved = saved is not None and homes.hub != saved.hub  # then every place has a new partner
    pairs = places.pairs(homes, [] if moved else [name for name in names if name in homes.names])
    first = [pair.spoke.name for pair in pairs if not known.is_known(pair_name(homes.hub, pair.spoke.name))]
    only = [pair.spoke.name for pair in pairs] if names and not moved else []
    return Plan(homes=homes, only=only, new=[name for name in homes.names if name not in before], first=first)


def _check_folder(name: str) -> None:
    """UserError if a folder of this machine cannot be a home."""
    folder, home = Path(name).expanduser().resolve(), Path.home().resolve()
    inside = [each for each in (home / ".ssh", profile.folder()) if folder.is_relative_to(each)]
    if (home.is_relative_to(folder) and folder != home) or inside or (folder.exists() and not folder.is_dir()):
        why = "is not a folder" if folder.exists() and not folder.is_dir() else "has more than your own files"
        raise UserError(
            f"'{name}' cannot be a home: it {'has the files of ssh or of Unison' if inside else why}",
            code="usage",
            hint="name a folder of its own, for example: `--folder ~/yurt-home`",
        )


def _with(known: dict[str, PlaceSettings], names: Sequence[str]) -> dict[str, PlaceSettings]:
    return {**known, **{name: PlaceSettings() for name in names if name not in known}}


def sync(
    planned: Plan,
    confirm: Confirm,
    *,
    agree: Agree = deletions.refused,
    refill: str = "",
    watch: Watch = unwatched,
) -> Result[list[Outcome]]:
    """Sync the homes. Before their first sync, measure them and ask; then homes.yaml is saved.

    Large deletions are copied only if `agree`. `refill` is a place that gets its files again if it has lost all of
    them. RefusedError: another sync runs on this machine, or the homes do not fit. UserError: the user does not agree.
    Every other failure is in the outcome of its pair.
    """
    homes, only, missed = planned.homes, planned.only, list[Outcome]()
    if planned.new or planned.first:
        among = [each for each in places.all_places(homes) if each.name in (homes.hub, *planned.first, *planned.new)]
        text = _profile(homes)
        from yurt.homes import guard

        optional = [] if planned.only or planned.new else planned.first
        without: Mapping[str, YurtError]
        try:
            survey = guard.check(among, text, lambda found: confirm(planned, found), optional=optional, watch=watch)
            without = survey.unreachable
        except UserError as error:
            if not optional or len(optional) == len(homes.names) - 1:
                raise
            without = dict.fromkeys(optional, error)  # the others are synced nevertheless
        missed = [_missed(homes.hub, name, error) for name, error in without.items()]
        if missed:
            only = [name for name in homes.names if name not in (homes.hub, *without)]
    if homes != config.load():
        config.save(homes)
    done = [] if missed and not only else rounds.run(homes, only, watch=watch, agree=agree, refill=refill).outcomes
    if any(each.released for each in done):
        _refresh(watch)
    found = result([*done, *missed])
    refilled = any(warning.endswith(one_sync.REFILLED) for warning in found.warnings)
    if refill and not refilled and any(each.code < 3 for each in done):
        note = f"{refill} has not lost all its files, so this was a usual sync; see `yurt home backups` for lost ones"
        return msgspec.structs.replace(found, warnings=[*found.warnings, note])
    return found


def delete_too(planned: Plan, done: Sequence[Outcome], *, watch: Watch = unwatched) -> Result[list[Outcome]]:
    """Sync the reached places again after the user has confirmed the large deletions of a sync.

    The confirmation counts for all places, as a deletion goes on from the hub, but for no more files than in `done`.
    """
    files: dict[str, int] = {}
    for each in (each for outcome in done for each in outcome.deletions):
        files[each.path] = max(each.files, files.get(each.path, 0))
    reached = [each.spoke for each in done if each.code < 3]
    again = rounds.run(
        planned.homes, reached, watch=watch, agree=lambda each: each.files <= files.get(shown(each.path), 0)
    ).outcomes
    if any(each.released for each in again):
        _refresh(watch)
    return result([*again, *(each for each in done if each.code == 3)])


def _refresh(watch: Watch) -> None:
    """Refresh the runs whose jobs were released, so that nothing says that they wait."""
    from yurt.contexts import folders
    from yurt.lifecycle.refresh.refresh import refresh_contexts
    from yurt.lifecycle.steps import STEPS

    store = folders.known_store()
    if store is not None:
        refresh_contexts(store, steps=STEPS, watch=watch)


def _missed(hub: str, place: str, error: YurtError) -> Outcome:
    """Return the outcome for a place that has never been synced and cannot be reached."""
    now = time.time()
    return one_sync.failed(Outcome(hub=hub, spoke=place, began=now, ended=now, code=3), error)


def check_refill(planned: Plan, place: str) -> None:
    """UserError if the place to refill is not one of the homes in sync, or has never been synced."""
    names = planned.homes.names
    if place and (place not in names or place in (*planned.new, *planned.first)):
        raise UserError(
            f"--refill: '{place}' is not one of the places in sync",
            code="usage",
            hint=f"name one of: {', '.join(names)}",
        )


def read_interval(text: str, *, repeat: bool) -> float:
    """Return the seconds between two rounds. UserError: the text is no duration, or rounds are not repeated."""
    if text and not repeat:
        raise UserError("--interval needs --watch", code="usage", hint="add `--watch`")
    try:
        return float(parse_seconds(text or INTERVAL))
    except ValueError as error:
        hint = "for example: `--interval 5m`"
        raise UserError(f"--interval {error}, not '{text}'", code="usage", hint=hint) from None


def sync_repeatedly(only: Sequence[str], interval: float, on_round: Callable[[Result[list[Outcome]]], None]) -> None:
    """Repeat rounds until the user interrupts. RefusedError: another process does it already."""
    from yurt.homes import watcher

    watcher.repeat(only, interval, lambda done: on_round(result(done.outcomes)))


def _profile(homes: Homes) -> str:
    place = Place(profile.client_of(homes), homes)
    return profile.merged(profile.read(place)[1]).decode(errors="surrogateescape")


def result(outcomes: Sequence[Outcome]) -> Result[list[Outcome]]:
    """Return outcomes as the result of a verb."""
    done = rounds.Round(list(outcomes))
    return Result(
        kind="home-sync",
        data=[readable(each) for each in outcomes],
        warnings=[_warning(each, warning) for each in outcomes for warning in each.warnings],
        exit_code=done.exit_code,
    )


def readable(outcome: Outcome) -> Outcome:
    """Return an outcome whose paths JSON can hold."""
    return msgspec.structs.replace(
        outcome,
        skipped=[msgspec.structs.replace(each, path=shown(each.path)) for each in outcome.skipped],
        failed=[msgspec.structs.replace(each, path=shown(each.path)) for each in outcome.failed],
        deletions=[msgspec.structs.replace(each, path=shown(each.path)) for each in outcome.deletions],
        paths=[shown(path) for path in outcome.paths],
    )


def _warning(outcome: Outcome, text: str) -> str:
    """Return a warning about a sync; it begins with the place that it is about."""
    return text if text.startswith((f"{outcome.hub} ", f"{outcome.spoke} ")) else f"{outcome.spoke}: {text}"


EXAMPLES = [
    "yurt home sync alpha beta",
    "yurt home sync",
    "yurt home sync alpha --folder ~/homes",
    "yurt home sync alpha beta --hub alpha",
    "yurt home sync --watch --interval 5m",
]


@verb(examples=EXAMPLES, context_help="")
@argument("names", nargs=-1, metavar="[CONTEXT]...", shell_complete=context_names)
@option(
    "--hub",
    metavar="NAME",
    default="",
    shell_complete=context_names,
    help="The place in the middle: a context whose login host reaches the others, or local (default).",
)
@option("--folder", metavar="DIR", default="", help="The folder of this machine (default: ~/yurt-home).")
@option("--yes", is_flag=True, help="Do not ask for confirmation, also not of a large deletion.")
@option(
    "--refill",
    metavar="PLACE",
    default="",
    shell_complete=context_names,
    help="If this place has lost all its files, copy them from another one again.",
)
@option("--watch", "repeat", is_flag=True, help="Sync again and again until Ctrl-C.")
@option(
    "--interval", metavar="TIME", default="", help="With --watch, the time between two syncs: 30s, 5m (default: 60s)."
)
def sync_command(
    names: tuple[str, ...], hub: str, folder: str, *, yes: bool, refill: str, repeat: bool, interval: str
) -> int:
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

    call.enable_gc()
    seconds = read_interval(interval, repeat=repeat)
    planned = plan(names, hub=hub, folder=str(Path(folder).expanduser().absolute()) if folder else "")
    check_refill(planned, refill)
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

        found = sync(planned, confirmed, agree=lambda _each: yes, refill=refill, watch=watch)
    code = render.result(found, lambda: print_outcomes(found.data))
    if not yes and _agrees(found.data):
        call.current().warnings.clear()
        with watching() as progress:
            again = delete_too(planned, found.data, watch=progress)
        code = render.result(again, lambda: print_outcomes(again.data))
    if not repeat:
        return code
    call.current().warnings.clear()
    sync_repeatedly(planned.only, seconds, lambda found: _print_round(found.data))
    return 0


def _agrees(done: list[Outcome]) -> bool:
    """Ask about the large deletions that a sync has left out. False without a terminal, or if there are none."""
    others = dict.fromkeys(deletion.other for each in done for deletion in each.deletions)
    if not others or not _on_terminal():
        return False
    where = render.plain(" and ".join(others))
    return confirm(f"delete these files on {where}, too? Backups are kept.", default=False)


def _on_terminal() -> bool:
    """Whether there is a user to ask."""
    return not call.current().json and sys.stdin.isatty() and sys.stderr.isatty()


def _print_round(outcomes: list[Outcome]) -> None:
    """Print one line about a round of --watch: what each pair did."""
    if call.current().json:
        render.stream("home-sync", outcomes)
        return
    if call.current().quiet and not any(each.code for each in outcomes):
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
    return confirm(f"keep these homes in sync ({render.plain(new)})?", default=False)


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
