"""Brings new bytes of the files of runs to this machine: one request per context, and again while the runs go on."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import msgspec

from yurt.backends.kinds import kind_of
from yurt.config.lock import locked
from yurt.contexts import connect
from yurt.contexts.fan_out import ready, side_by_side
from yurt.errors import YurtError
from yurt.lifecycle.refresh.refresh import refresh_contexts
from yurt.model import ids, layout
from yurt.model.growth import Growing, Kind
from yurt.model.progress import Event, Watch, unwatched
from yurt.store import Entry, Store
from yurt.tracking.followed import Followed, folder

if TYPE_CHECKING:
    from yurt.backends.base import Files

INTERVAL, LONGEST = 15.0, 120.0
"""Seconds between two requests to a context: while files change, and at most."""

DEEP, SELDOM = 4, 60.0
"""Every so many requests search all folders of a run; the others only those in which files were found before. Requests
that are so many seconds apart always do."""

SLACK = 5.0
"""Seconds by which the clocks of two machines may differ."""


class Unit(msgspec.Struct, frozen=True, kw_only=True):
    """What is followed of a run: a folder on a site, and where its copies go."""

    run: str
    """The run, or the sweep of the task."""
    prefix: str = ""
    """For a task: its path below the copies of its sweep, with a slash."""
    context: str
    folder: str
    tasks: int = 0
    """For a sweep: how many tasks it has."""
    final: bool = False
    """Whether it has finished according to the index."""
    place: str = ""
    since: float = 0
    until: float = 0

    def is_complete(self, kinds: Sequence[Kind]) -> bool:
        """Whether it has ended, and everything of these kinds has come."""
        return Followed(self.run).is_complete(self.prefix, kinds)

    def over(self, followed: Followed) -> bool:
        """Whether it has ended, so that a look from now on finds everything."""
        return self.final or (followed.ended_tasks() == self.tasks if self.tasks else followed.ended(self.prefix))

    def growing(self, followed: Followed, *, deep: bool) -> Growing:
        known = [
            msgspec.structs.replace(each, path=each.path[len(self.prefix) :])
            for each in followed.known()
            if each.path.startswith(self.prefix)
        ]
        return Growing(
            folder=self.folder,
            sweep=bool(self.tasks),
            known=known,
            deep=deep or all(each.path.rpartition("/")[2] in (layout.EXIT, layout.USAGE) for each in known),
            place=self.place,
            since=self.since,
            until=self.until,
        )


class Round(msgspec.Struct, frozen=True):
    """The result of one request."""

    changed: frozenset[str]
    """The runs and sweeps of which new bytes came."""
    again: bool
    """Whether a file was replaced, so that its beginning is still missing."""
    ended: bool = False
    """Whether something has ended, so that a search would find everything of it."""


def units(store: Store, entries: Sequence[Entry]) -> list[Unit]:
    """Return what to follow of runs, sweeps and tasks. Races that nobody has won yet are left out."""
    found = []
    for entry in entries:
        run = entry.run
        if run.tasks and run.race:  # each of its tasks has a place of its own
            names = (ids.task(run.id, number) for number, each in store.tasks(run.id).items() if each.started)
            found += units(store, store.several(list(names)))
        elif run.folder:
            found.append(_unit(store, entry))
    return found


def _unit(store: Store, entry: Entry) -> Unit:
    run, status = entry.run, entry.status
    task = "" if run.task is None else f"{layout.TASKS}/{run.task}/"
    plan = None if run.code.tree or not kind_of(run.context_type).here else store.plan(run.sweep or run.id)
    return Unit(
        run=run.sweep or run.id,
        prefix=task,
        context=run.context,
        folder=run.folder,
        tasks=run.tasks,
        final=status.final and status.state != "lost",  # a lost run may come back
        place=plan.place if plan else "",
        since=(status.started or run.created) - SLACK,
        until=status.ended + SLACK if status.ended else 0,
    )


def seed(store: Store, entries: Sequence[Entry]) -> None:
    """Use the metrics of finished runs that this machine has saved, as far as they are complete."""
    for entry in entries:
        run = entry.run
        kept = store.kept(run.id) if entry.status.final and not run.tasks else None
        if kept is not None and kept.metrics and len(kept.metrics) == kept.metrics_size:
            prefix = "" if run.task is None else f"{layout.TASKS}/{run.task}/"
            Followed(run.sweep or run.id).put(f"{prefix}{layout.METRICS}", kept.metrics)


def bring(
    store: Store, entries: Sequence[Entry], kinds: Sequence[Kind], *, watch: Watch = unwatched
) -> list[YurtError]:
    """Bring what is new of runs, sweeps and tasks, from all contexts at once. Return what failed, for each context."""
    seed(store, entries)
    wanted = _by_context([unit for unit in units(store, entries) if not unit.is_complete(kinds)])
    failed: list[YurtError] = []
    if wanted:
        watch(Event(f"reading metrics on {', '.join(wanted)}"))

    def one(context: str) -> None:
        try:
            files = connect.responding_backend(context).files
            while look(files, context, wanted[context], kinds, deep=True).again:
                pass
        except YurtError as error:
            failed.append(error)

    if wanted:
        side_by_side(one, list(wanted))
    return failed


def look(files: Files, context: str, wanted: Sequence[Unit], kinds: Sequence[Kind], *, deep: bool) -> Round:
    """Make one request to a context. UnreachableError: what has come is kept."""
    with locked(folder(context)):  # wait until no other process of this machine changes the copies
        followed = {unit.run: Followed(unit.run) for unit in wanted}
        over = [unit for unit in wanted if deep and unit.over(followed[unit.run])]
        reader = _Reader(wanted, followed)
        try:
            files.grow([unit.growing(followed[unit.run], deep=deep) for unit in wanted], kinds, reader)
            for unit in over if not reader.again else ():
                followed[unit.run].note_complete(unit.prefix, kinds)
        finally:
            for each in followed.values():
                each.save()
    ended = [unit for unit in wanted if unit.over(followed[unit.run])]
    return Round(frozenset(reader.changed), reader.again, ended=len(ended) > len(over))


class Follower:
    """Follows runs in the background, one thread per context, until it is stopped."""

    def __init__(
        self,
        store: Store,
        entries: Sequence[Entry],
        kinds: Sequence[Kind],
        *,
        interval: float = INTERVAL,
        on_change: Callable[[frozenset[str]], None] = lambda _runs: None,
        on_word: Callable[[str], None] = lambda _text: None,
    ) -> None:
        self._store, self._kinds, self._interval = store, kinds, interval
        self._names = [entry.run.id for entry in entries]
        self._contexts = {context for entry in entries for context in contexts_of(store, entry)}
        self._on_change, self._on_word = on_change, on_word
        self._over = threading.Event()
        self._threads: list[threading.Thread] = []

    def start(self) -> None:
        """Begin; the first request has been made by `bring`."""
        ready()
        for context in sorted(self._contexts):
            thread = threading.Thread(target=self._follow, args=(context,), daemon=True)
            thread.start()
            self._threads.append(thread)

    def stop(self) -> None:
        self._over.set()

    def following(self) -> bool:
        """Whether some of the runs may still write."""
        return any(thread.is_alive() for thread in self._threads)

    def _follow(self, context: str) -> None:
        pause, number, silent, deep = self._interval, 0, False, False
        with self._store.twin() as store:
            while not self._over.wait(pause):
                number += 1
                try:
                    wanted, waiting = self._wanted(store, context, refresh=number % DEEP == 0)
                    if not wanted and not waiting:
                        return
                    files = connect.responding_backend(context).files
                    deep = deep or number % DEEP == 0 or pause >= SELDOM
                    seen = look(files, context, wanted, self._kinds, deep=deep) if wanted else None
                except YurtError as error:
                    if not silent:
                        self._on_word(f"{error.message}; yurt keeps trying")
                    silent, pause = True, min(pause * 2, LONGEST)
                    continue
                if silent:
                    self._on_word(f"{context} responds again")
                changed = seen is not None and bool(seen.changed)
                pause = self._interval if changed or silent else min(pause * 2, max(LONGEST, self._interval))
                silent = False
                deep = seen is not None and seen.ended
                if seen is None:
                    continue
                if deep:
                    pause = self._interval
                if seen.again:
                    pause = min(pause, 1.0)
                if seen.changed:
                    self._on_change(seen.changed)

    def _wanted(self, store: Store, context: str, *, refresh: bool) -> tuple[list[Unit], bool]:
        """Return what may still grow on a context, and whether a race may still bring something there."""
        entries = store.several(self._names)
        races = [entry for entry in entries if entry.run.race and not entry.status.final]
        if races and refresh:
            refresh_contexts(store, sorted({each for entry in races for each in contexts_of(store, entry)}))
            entries = store.several(self._names)
        found = _by_context(units(store, entries)).get(context, [])
        return [unit for unit in found if not unit.is_complete(self._kinds)], bool(races)


def contexts_of(store: Store, entry: Entry) -> list[str]:
    """Return the contexts that may have files of a run."""
    if not entry.run.race:
        return [entry.run.context]
    from yurt.lifecycle.races.view import contexts_of as candidates

    return candidates(store, entry.run)


def _by_context(found: Sequence[Unit]) -> dict[str, list[Unit]]:
    grouped: dict[str, list[Unit]] = {}
    for unit in found:
        grouped.setdefault(unit.context, []).append(unit)
    return grouped


class _Reader:
    """Appends what a site sends to the copies of each run."""

    def __init__(self, wanted: Sequence[Unit], followed: dict[str, Followed]) -> None:
        self._wanted, self._followed = wanted, followed
        self.changed: set[str] = set()
        self.again = False
        self._unit = wanted[0]

    def begin(self, at: int, path: str, seen: str, start: int) -> None:
        self._unit = self._wanted[at]
        self._followed[self._unit.run].begin(f"{self._unit.prefix}{path}", seen, start)

    def more(self, part: bytes) -> None:
        self._note(self._followed[self._unit.run].more(part))

    def end(self) -> None:
        followed = self._followed[self._unit.run]
        self._note(followed.end())
        self.again = self.again or followed.incomplete

    def _note(self, new: int) -> None:
        if new:
            self.changed.add(self._unit.run)
