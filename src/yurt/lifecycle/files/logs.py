"""What a run wrote, by byte offset, so that a cut link costs no line and doubles none."""

from __future__ import annotations

import time
from collections.abc import Callable

from yurt.errors import NotFoundError, UnreachableError, YurtError
from yurt.lifecycle.refresh.refresh import refresh_contexts
from yurt.model.files import LogPosition, LogSink, Stream
from yurt.model.run import Run
from yurt.sites import connect
from yurt.store import Store

Sink = Callable[[Stream, bytes], None]
"""Is handed what a run wrote to one of its logs."""


def copy(store: Store, run: Run, sink: Sink, *, lines: int | None = None) -> str:
    """What a run has written so far; of an ended one whose folder is out of reach or gone, what is kept here.

    Returns what to say of that. NotFoundError if there is nothing.
    """
    log = LogPosition(run.id, run.folder)
    entry = store.get(run.id)
    try:
        connect.named_backend(run.context).files.tail([log], _to(sink), lines=lines)
        if not log.gone:
            return ""
        why = f"its folder on {run.context} is gone"
    except YurtError as error:
        if log.begun or not store.is_kept(run.id):
            raise
        why = error.message
    said = from_here(store, run, sink, lines)
    if not said:
        state = entry.status.state if entry is not None else "gone"
        raise NotFoundError(
            f"run {run.id} has no logs on {run.context}: it is {state}", code="not-found", hint=f"yurt show {run.id}"
        )
    return f"{why}; {said}"


def from_here(store: Store, run: Run, sink: Sink, lines: int | None) -> str:
    """Hand out what is kept of an ended run's logs, and say how much that is; empty if nothing is kept."""
    kept = store.kept(run.id)
    if kept is None:
        return ""
    cut = []
    for which, text, size in (("out", kept.out, kept.out_size), ("err", kept.err, kept.err_size)):
        sink(which, _last(text, lines))  # type: ignore[arg-type]
        if len(text) < size:
            cut.append(f"{len(text) >> 10} KB of {which}.log")
    return f"these are the last {' and '.join(cut)}, kept here" if cut else "this is what it wrote, kept here"


def _last(text: bytes, lines: int | None) -> bytes:
    return text if lines is None else b"".join(text.splitlines(keepends=True)[-lines:])


def follow(
    store: Store,
    run: Run,
    sink: Sink,
    *,
    lines: int | None = None,
    on_word: Callable[[str], None] = lambda _words: None,
) -> None:
    """What a run writes, as it comes, until it has ended. A cut link is mended, for as long as it takes."""
    log = LogPosition(run.id, run.folder)
    pause, ended = 0.5, False
    files = connect.named_backend(run.context).files
    while True:
        before = (log.out, log.err)
        try:
            files.tail([log], _to(sink), follow=not ended, lines=lines)
            if ended:
                if log.gone and (said := from_here(store, run, sink, lines)):
                    on_word(f"its folder on {run.context} is gone; {said}")
                return
            ended = _over(store, run)
            pause = 0.5 if not log.gone or (log.out, log.err) != before else min(pause * 1.5, 10)
        except UnreachableError as error:
            on_word(f"{error.message}; trying again")
            pause = 0.5 if (log.out, log.err) != before else min(pause * 2, 15)
        lines = None if log.begun else lines
        if not ended:
            time.sleep(pause)


def _to(sink: Sink) -> LogSink:
    return lambda _log, which, part: sink(which, part)


def _over(store: Store, run: Run) -> bool:
    refreshed = refresh_contexts(store, [run.context])
    entry = store.get(run.id)
    return not refreshed.failed and (entry is None or entry.status.final)
