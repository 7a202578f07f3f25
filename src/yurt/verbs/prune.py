"""prune: run folders are removed from their sites. What was known of the runs stays on this machine.

Nothing goes that has not ended as its site says now, nor the only copy of results, unless that is asked for.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

import msgspec

from yurt.backends.job import script
from yurt.backends.shell import scripts
from yurt.config import contexts
from yurt.errors import UnreachableError, YurtError
from yurt.hosts import Host, host_of
from yurt.hosts.base import Answer, refusal
from yurt.model import ids, layout
from yurt.model.progress import Event, Watch, unwatched
from yurt.model.run import Run, Status
from yurt.model.state import Sighting
from yurt.runs.files.transfer import NOTHING
from yurt.runs.refresh import archive
from yurt.runs.refresh.refresh import look
from yurt.runs.select import task_entries
from yurt.snapshot import send
from yurt.store import Entry, Store

PARTS = (layout.OUTPUTS, layout.CHECKPOINTS)
"""What counts as results."""

LONG = 3600.0
"""Seconds that a removal may take; cut off, it goes on there."""


class Found(msgspec.Struct, frozen=True):
    """What a site has of a run: there, gone, going (half removed), foreign (not one of yurt's)."""

    what: str
    size: int = 0
    outputs: str = NOTHING
    checkpoints: str = NOTHING
    tasks: dict[int, tuple[str, str]] = {}
    """Of a sweep: outputs and checkpoints of each task that has some."""

    def results(self, run: str) -> Iterator[tuple[str, str, str]]:
        """Outputs and checkpoints, each with the run or the task they are of."""
        yield run, self.outputs, self.checkpoints
        for number, (outputs, checkpoints) in self.tasks.items():
            yield ids.task(run, number), outputs, checkpoints


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """A run whose folder may go."""

    id: str
    context: str
    project: str
    state: str
    ended: float | None
    created: float
    size: int
    """Bytes on the site."""
    files: int
    """Files among its outputs and checkpoints."""
    fetched: bool
    """Whether all of them have a copy here."""
    kept: str
    """Why it stays; empty if it goes."""


class Pruned(msgspec.Struct, frozen=True, kw_only=True):
    """What goes, or went, and what stays."""

    done: bool
    """Whether it was removed; else it is only what would be."""
    going: list[Candidate]
    staying: list[Candidate]


def select(
    store: Store,
    named: Sequence[Entry],
    *,
    context: str = "",
    states: Sequence[str] = (),
    older_than: float | None = None,
) -> list[Entry]:
    """The runs that are meant: those named, else all that ended; of these, those that pass. The oldest first."""
    where: dict[str, Sequence[str]] = {"context": [context]} if context else {}
    found = list(named) if named else [entry for entry in store.newest(where=where) if entry.status.final]
    since = None if older_than is None else time.time() - older_than
    kept = [
        entry
        for entry in found
        if (not context or entry.run.context == context)
        and (not states or entry.status.state in states)
        and (since is None or (entry.status.ended or entry.run.created) < since)
        and (named or store.gone_at(entry.run.id) is None)
    ]
    return sorted(kept, key=lambda entry: entry.run.created)


def survey(
    store: Store, entries: Sequence[Entry], *, unfetched: bool, named: bool = False, watch: Watch = unwatched
) -> list[Candidate]:
    """Look at the sites of runs, and judge each. Raises where a site could not be looked at: then nothing may go."""
    places = sorted({entry.run.context for entry in entries})
    watch(Event(f"looking at {', '.join(places)}"))
    looked = look(store, places, also=[entry.run.sweep or entry.run.id for entry in entries], watch=watch)
    for error in looked.failed.values():
        raise _blind(error)
    found: list[Candidate] = []
    for name in places:
        watch(Event(f"measuring runs on {name}"))
        group = [store.get(entry.run.id) or entry for entry in entries if entry.run.context == name]
        there = _measure(host_of(contexts.named(name)), [entry.run for entry in group])
        for entry in group:
            has = there[entry.run.id]
            if has.what == "gone":
                _note_late(store, entry.run.id)
                if not named:
                    continue
            found.append(judge(store, entry, has, looked.seen.get(entry.run.id), unfetched=unfetched))
    return found


def _blind(error: YurtError) -> YurtError:
    error.message += "; nothing was removed"
    return error


def _measure(host: Host, runs: Sequence[Run]) -> dict[str, Found]:
    folders = [run.folder for run in runs]
    answer = host.run(tools() + 'survey "$@"', *folders, timeout=600)
    if answer.code:
        raise refusal(host.name, "the run folders could not be measured", answer.errors)
    return dict(zip((run.id for run in runs), read_survey(answer.text, folders), strict=True))


def read_survey(text: str, folders: Sequence[str]) -> list[Found]:
    """What `survey` said of each folder."""
    sizes, blocks = read_sizes(text)
    found = []
    for folder, (line, *tasks) in zip(folders, blocks, strict=True):
        what, outputs, checkpoints = (*line.split(), NOTHING, NOTHING)[:3]
        found.append(Found(what, sizes.get(folder, 0), outputs, checkpoints, read_tasks(tasks)))
    return found


def read_sizes(text: str) -> tuple[dict[str, int], list[list[str]]]:
    """Bytes by folder; then the lines said of each run, those of tasks with that of their sweep."""
    head, _, tail = text.partition("= runs\n")
    sizes = {path: int(size) * 1024 for size, _, path in (line.partition("\t") for line in head.splitlines()[1:])}
    blocks: list[list[str]] = []
    for line in tail.splitlines():
        if line.startswith("+"):
            blocks[-1].append(line)
        else:
            blocks.append([line])
    return sizes, blocks


def read_tasks(lines: Sequence[str]) -> dict[int, tuple[str, str]]:
    """What `measure_tasks` said."""
    words = (line[1:].split() for line in lines)
    return {int(number): (outputs, checkpoints) for number, outputs, checkpoints in words if number.isdigit()}


def judge(store: Store, entry: Entry, has: Found, seen: Sighting | None, *, unfetched: bool) -> Candidate:
    """Whether a run's folder may go, and if not, why."""
    run, status = entry.run, entry.status
    missing = without_copy(store, run.id, has)
    kept = _kept(run, status, has, seen)
    kept = kept or ("" if unfetched or has.what == "going" else _only_copy(run, missing))
    return Candidate(
        id=run.id,
        context=run.context,
        project=run.project,
        state=status.state,
        ended=status.ended,
        created=run.created,
        size=has.size,
        files=sum(_count(each) for _run, *both in has.results(run.id) for each in both),
        fetched=not missing,
        kept=kept,
    )


def _kept(run: Run, status: Status, has: Found, seen: Sighting | None) -> str:
    if run.task is not None:  # its gate is in its folder: a job of the sweep that is late must find it closed
        return f"a task goes with its sweep; yurt prune {run.sweep}"
    if not status.final:
        return f"it has not ended ({status.state})"
    if has.what == "gone":
        return "its folder is gone already"
    if has.what == "foreign":
        return "its folder is not as yurt made it"
    if has.what == "there" and (seen is None or seen.live is not None):
        return "its site still has a job of it"
    return ""


def _only_copy(run: Run, missing: Mapping[str, Sequence[str]]) -> str:
    if not missing:
        return ""
    parts = [part for part in PARTS if any(part in each for each in missing.values())]
    whole = " --all" if layout.CHECKPOINTS in parts else ""
    whose = f"the {' and '.join(parts)} of {len(missing)} of its tasks" if run.sets else f"its {' and '.join(parts)}"
    return f"the only copy of {whose}; yurt fetch {run.id}{whole}"


def without_copy(store: Store, run: str, has: Found) -> dict[str, list[str]]:
    """Which results of a run, or of tasks of a sweep, are on their site only, as they are there now."""
    missing = {name: _without_copy(store, name, both) for name, *both in has.results(run)}
    return {name: parts for name, parts in missing.items() if parts}


def _without_copy(store: Store, run: str, measures: Sequence[str]) -> list[str]:
    wanted = dict(zip(PARTS, measures, strict=True))
    missing = {name for name, each in wanted.items() if each != NOTHING}
    for copy in store.copies(run) if missing else ():
        brought = {layout.OUTPUTS: copy.outputs, layout.CHECKPOINTS: copy.checkpoints}
        same = {name for name in missing if brought[name] == wanted[name] != "?"}
        if same and _is_here(Path(os.fsdecode(copy.target)), [wanted[name] for name in same]):
            missing -= same
    return [name for name in wanted if name in missing]


def _is_here(target: Path, measures: Sequence[str]) -> bool:
    """Whether a folder still holds as much as was brought there."""
    files = size = 0
    for folder, _folders, names in os.walk(target):
        for name in names:
            try:
                size += os.lstat(f"{folder}/{name}").st_size
            except OSError:
                continue
            files += 1
    return files >= sum(_count(each) for each in measures) and size >= sum(int(each.split(":")[1]) for each in measures)


def _count(measured: str) -> int:
    return int(measured.partition(":")[0]) if measured != "?" else 1


def remove(store: Store, candidates: Sequence[Candidate], *, watch: Watch = unwatched) -> list[YurtError]:
    """Remove run folders, all of a context in one go. Safe to repeat, and to kill at any point.

    Returns the errors of sites where not all went.
    """
    errors: list[YurtError] = []
    for name in sorted({each.context for each in candidates}):
        group = [each for each in candidates if each.context == name]
        watch(Event(f"removing {len(group)} runs from {name}"))
        try:
            _remove_from(store, host_of(contexts.named(name)), group)
        except YurtError as error:
            errors.append(error)
    return errors


def _remove_from(store: Store, host: Host, candidates: Sequence[Candidate]) -> None:
    """The one place where run folders are removed. What is to be kept of them comes home before."""
    entries = [entry for each in candidates if (entry := store.get(each.id)) is not None]
    archive.bring_all(store, host, with_tasks(store, entries))
    runs = [entry.run for entry in entries]
    store.note_going([run.id for run in runs], time.time())
    answer = host.run(tools() + 'remove "$@"', *(run.folder for run in runs), timeout=LONG)
    words = [line.split() for line in answer.text.splitlines()]
    gone = [word[1] for word in words if len(word) == 2 and word[0] == "gone" and ids.names_folder(word[1])]
    store.note_gone(gone, time.time())
    left = sorted({run.id for run in runs} - set(gone))
    if not left:
        return
    # One that another yurt removed meanwhile is gone as well.
    still = [run for run, has in _measure(host, [run for run in runs if run.id in left]).items() if has.what != "gone"]
    store.note_gone(set(left) - set(still), time.time())
    if still:
        raise failure(host.name, f"run {', '.join(still)} could not be removed", answer)


def with_tasks(store: Store, entries: Sequence[Entry]) -> list[Entry]:
    """Runs, and with sweeps those of their tasks that have begun."""
    sweeps = [entry for entry in entries if entry.run.sets]
    begun = [[n for n, status in store.tasks(entry.run.id).items() if status.started] for entry in sweeps]
    return [*entries, *task_entries(store, list(zip(sweeps, begun, strict=True)))]


def failure(name: str, what: str, answer: Answer) -> YurtError:
    """What it means that a removal did not come to its end."""
    if answer.code > 128:  # as login nodes do with who takes too much of them
        return UnreachableError(
            f"{name}: the removal was killed there before it had ended",
            code="answer-lost",
            hint="repeat the command: it goes on from there",
        )
    return refusal(name, what, answer.errors)


def _note_late(store: Store, run: str) -> None:
    """A folder is gone whose removal nobody saw the end of."""
    at = store.going_since(run)
    if at is not None:
        store.note_gone([run], at)


@cache
def tools() -> str:
    """The functions that look at run folders and remove them."""
    return script.gate() + scripts.text("measure.sh") + send.receiver() + "\n" + scripts.text("remove.sh")
