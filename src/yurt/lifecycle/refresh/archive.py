"""Saves logs and metrics of finished runs on this machine, and agrees with other machines on their final status.

It takes one request per context, and failures are not raised: a later refresh tries again. A request is limited in
bytes and in time; the remaining runs follow in later ones.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

import msgspec

from yurt.contexts import connect
from yurt.errors import YurtError
from yurt.model import layout
from yurt.model.files import Ended, Limits, Piece
from yurt.model.progress import Event, Watch, unwatched
from yurt.model.run import Run, Status
from yurt.model.run_parts import Amount, Parts, ResultFile
from yurt.model.state import read_ending
from yurt.model.verdict import (
    SweepVerdict,
    Verdict,
    adopt,
    adopt_sweep,
    follows,
    read_sweep_verdict,
    read_verdict,
    sweep_verdict,
    verdict_of,
)
from yurt.store import Entry, Mirrored, Store

if TYPE_CHECKING:
    from yurt.backends.base import Files

LOG = 64 << 10
"""Bytes saved of the end of each log."""

METRICS, METRICS_HEAD = 1 << 20, 256 << 10
"""metrics.jsonl is saved completely up to METRICS bytes; of a larger one, METRICS_HEAD bytes and the end."""

TRIP, SECONDS = 16 << 20, 5
"""Limits of one request: bytes, and seconds on the site."""

FILES = 500
"""How many result files of a run are listed."""

LONG = 120
"""Seconds allowed if everything must be fetched."""


def catch_up(store: Store, context: str, files: Files, *, watch: Watch = unwatched) -> set[str]:
    """Save what is due of a context, up to the limits of one request, and return the saved runs.

    Failures are retried later.
    """
    now = time.time()
    due = store.to_mirror(context, now)
    entries = [entry for run in due if (entry := store.get(run)) is not None]
    if not entries:
        return set()
    watch(
        Event(
            f"saving logs of {len(entries)} finished runs on {context}" if len(entries) > 1 else f"querying {context}"
        )
    )
    try:
        saved, asked = take(store, files, entries)
    except YurtError:
        saved, asked = set(), len(entries)
    store.mirror_later([entry.run.id for entry in entries[:asked] if entry.run.id not in saved], now)
    return saved


def bring_all(store: Store, files: Files, entries: Sequence[Entry]) -> None:
    """Save everything due of finished runs, in as many requests as needed. UnreachableError: not all was saved."""
    kept = store.all_kept()
    left = [entry for entry in entries if entry.status.final and entry.run.id not in kept]
    while left:
        _saved, asked = take(store, files, left, seconds=LONG)
        left = left[asked:]


def catch_up_elsewhere(store: Store, refreshed_at: Collection[str]) -> None:
    """Do the same for contexts that were not refreshed."""
    for name in store.contexts_to_mirror(time.time()):
        if name not in refreshed_at:
            try:
                catch_up(store, name, connect.responding_backend(name).files)
            except YurtError:  # the context no longer exists, or does not respond
                store.mirror_later(store.to_mirror(name, time.time()), time.time())


def take(store: Store, files: Files, entries: Sequence[Entry], *, seconds: int = SECONDS) -> tuple[set[str], int]:
    """Make one request. Return the runs that were saved, and how many entries, from the first, the site processed."""
    found = _ask(store, files, entries, content=True, seconds=seconds)
    _adopt(store, entries, found)
    now = time.time()
    kept = {entries[at].run.id: _mirrored(pieces, now) for at, pieces in found.items() if "there" in pieces}
    store.keep(kept)
    # If not even the first was processed, count it anyway: it is retried later and does not block the others.
    return set(kept), max(found, default=0) + 1


def inspect(store: Store, entry: Entry, *, timeout: float) -> Parts:
    """Measure the folder of a finished run, and save its logs and metrics if that is not done yet.

    UnreachableError: the site could not be queried.
    """
    run = entry.run.id
    if not entry.run.folder:  # its site was never reached
        return Parts(there=False, parts={})
    content = not store.is_kept(run)
    files = connect.responding_backend(entry.run.context).files
    found = _ask(store, files, [entry], content=content, measure=True, timeout=timeout)
    _adopt(store, [entry], found)
    pieces = found.get(0, {})
    parts = Parts(
        there="there" in pieces, parts=_amounts(pieces.get("parts")), files=_result_files(_content(pieces, "files"))
    )
    now = time.time()
    if parts.there and content:
        store.keep({run: _mirrored(pieces, now)})
    store.note_parts(run, now, msgspec.json.encode(parts))
    return parts


def _ask(
    store: Store,
    files: Files,
    entries: Sequence[Entry],
    *,
    content: bool,
    measure: bool = False,
    timeout: float = 0,
    seconds: int = SECONDS,
) -> dict[int, dict[str, Piece]]:
    """Return what the site sent for each run, by its position in `entries`."""
    ended = [Ended(entry.run.folder, _verdict(store, entry)) for entry in entries]
    limits = Limits(trip=TRIP, seconds=seconds, log=LOG, metrics=METRICS, metrics_head=METRICS_HEAD, files=FILES)
    return files.collect(ended, limits, content=content, measure=measure, timeout=timeout or 55 + seconds)


def _verdict(store: Store, entry: Entry) -> str:
    """Return the final status of a run according to the index; empty if it has not finished."""
    if not entry.status.final:
        return ""
    if entry.run.task is not None and follows(entry.status):
        return ""
    if entry.run.tasks:
        found: Verdict = sweep_verdict(entry.status, store.tasks(entry.run.id))
    else:
        found = verdict_of(entry.status)
    return msgspec.json.encode(found).decode()


def _adopt(store: Store, entries: Sequence[Entry], found: dict[int, dict[str, Piece]]) -> None:
    """Adopt the final statuses recorded in the run folders."""
    now = time.time()
    runs: dict[str, dict[str, Piece]] = {}
    tasks: dict[str, dict[int, dict[str, Piece]]] = {}
    for at, pieces in found.items():
        run = entries[at].run
        if "there" not in pieces:
            continue
        if run.tasks:
            _adopt_sweep(store, run, read_sweep_verdict(_content(pieces, layout.STATUS)))
        elif run.task is not None:
            tasks.setdefault(run.sweep, {})[run.task] = pieces
        else:
            runs[run.id] = pieces

    def adopted(pieces: dict[str, Piece], status: Status) -> Status:
        if not status.final:
            return status
        verdict = read_verdict(_content(pieces, layout.STATUS))
        after = adopt(status, verdict, read_ending(_content(pieces, layout.EXIT)), now)
        return after if after.usage is not None else _measured(after, _content(pieces, "usage"))

    store.change(runs, lambda run, status: adopted(runs[run], status))
    for sweep, each in tasks.items():
        store.change_tasks(sweep, each, lambda number, status, each=each: adopted(each[number], status))  # type: ignore[misc]


def _measured(status: Status, samples: bytes) -> Status:
    """Return the status of a run whose job was killed, with what it had used until then."""
    if not samples:
        return status
    from yurt.model.usage_samples import usage

    found = usage(samples, ended=True)
    limit = found.memory_limit_mb if found is not None and status.state == "out_of_memory" else None
    if found is not None and (found.memory_mb or 0) < 0.8 * (limit or 0):  # it rose too fast for the samples
        found = msgspec.structs.replace(found, memory_mb=None)
    return msgspec.structs.replace(status, usage=found)


def _adopt_sweep(store: Store, run: Run, verdict: SweepVerdict | None) -> None:
    if verdict is None:
        return
    sweep, never = run.id, dict(verdict.each(run.tasks))

    def how(number: int, status: Status) -> Status:
        seen = not status.final or status.started or status.exit_code is not None
        return status if seen else adopt(status, never[number], None, 0)

    store.change_tasks(sweep, never, how, lambda status: adopt_sweep(status, verdict))
    natives = dict(verdict.native_of_each(run.tasks))
    differing = [
        number for number, each in store.tasks(sweep).items() if natives.get(number, each.native) != each.native
    ]
    if differing:
        store.change_tasks(
            sweep, differing, lambda number, status: msgspec.structs.replace(status, native=natives[number])
        )


def _mirrored(pieces: dict[str, Piece], now: float) -> Mirrored:
    nothing = Piece(0, b"")
    out, err, metrics = (pieces.get(name, nothing) for name in ("out", "err", "metrics"))
    return Mirrored(
        at=now,
        out=out.content,
        err=err.content,
        metrics=metrics.content,
        out_size=out.size,
        err_size=err.size,
        metrics_size=metrics.size,
        ending=_content(pieces, layout.EXIT),
    )


def _content(pieces: dict[str, Piece], name: str) -> bytes:
    return pieces[name].content if name in pieces else b""


def _amounts(piece: Piece | None) -> dict[str, Amount]:
    lines = piece.content.decode(errors="replace").splitlines() if piece is not None else []
    words = [line.split(" ") for line in lines]
    return {each[0]: Amount(_count(each[1]), _count(each[2])) for each in words if len(each) == 3}


def _result_files(listed: bytes) -> list[ResultFile]:
    """Parse lines "BYTES PATH", in which a newline of a name is \\001."""
    rows = (line.partition(b" ") for line in listed.split(b"\n"))
    sizes = ((_count(size.decode(errors="replace")), path) for size, _space, path in rows)
    found = [ResultFile(_text(path.replace(b"\1", b"\n")), size) for size, path in sizes if size is not None]
    return found[:FILES]


def _text(path: bytes) -> str:
    return path.decode(errors="backslashreplace")


def _count(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 18 else None
