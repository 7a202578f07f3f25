"""Logs of one run, read by byte offset: a lost connection neither drops nor repeats a line."""

from __future__ import annotations

import time
from collections.abc import Callable

from yurt.clocks import clocks, ending_by
from yurt.contexts import early_answer
from yurt.errors import NotFoundError, UnreachableError, YurtError
from yurt.model import log_chunks
from yurt.model.files import LogPosition, LogSink, Stream
from yurt.model.run import Run
from yurt.model.site_words import Reading
from yurt.store import Entry, Store

Sink = Callable[[Stream, bytes], None]
"""Receives the bytes that a run wrote to one of its logs."""


def copy(store: Store, run: Run, sink: Sink, *, lines: int | None = None, only: Stream | None = None) -> str:
    """Pass what a run has written so far to `sink`. `only`: one log is enough.

    If the run has finished and its folder is unreachable or gone, the part saved on this machine is used; if that is
    all, the site is given only a moment. Return a warning about that, or an empty string. NotFoundError if there are no
    logs.
    """
    entry = store.get(run.id)
    saved = entry is not None and all_saved(store, entry)
    with ending_by(time.monotonic() + clocks().again if saved else None):
        return _copy(store, run, LogPosition(run.id, run.folder, only=only), sink, lines, entry=entry, saved=saved)


def _copy(
    store: Store, run: Run, log: LogPosition, sink: Sink, lines: int | None, *, entry: Entry | None, saved: bool
) -> str:
    if not run.folder and run.race and entry is not None and not entry.status.final:
        return ""  # no candidate has started yet
    if not run.folder:
        raise NotFoundError(
            f"run {run.id} has no logs: it was never submitted",
            code="not-found",
            hint=f"see the run with `yurt show {run.id}`",
        )
    basis = early_answer.basis_of_logs(run.context, run.folder, lines, log.only)
    answer = early_answer.find(run.context, basis)
    with Reading(run.context):
        if answer is not None and log_chunks.read(answer, log, _to(sink)):
            return about_cut(log)
    try:
        from yurt.contexts import connect

        if not log.begun:
            early_answer.expect("logs", basis)
        connect.responding_backend(run.context, alone=not saved).files.tail([log], _to(sink), lines=lines)
        if not log.gone:
            return about_cut(log)
        why = f"the run folder on {run.context} is gone"
    except YurtError as error:
        if log.begun or not store.is_kept(run.id):
            raise
        why = error.message
    note = copy_saved(store, run, sink, lines)
    if not note:
        state = entry.status.state if entry is not None else "gone"
        raise NotFoundError(
            f"run {run.id} has no logs on {run.context}: its state is {state}",
            code="not-found",
            hint=f"see the run with `yurt show {run.id}`",
        )
    return f"{why}; {note}"


def about_cut(log: LogPosition) -> str:
    """Return a note that not all of the last lines of a log are shown; empty if they are."""
    if not log.cut:
        return ""
    return f"its lines are very long: showing the last {log.cut / 1e6:.1f} MB; `yurt logs {log.run}` shows all"


def all_saved(store: Store, entry: Entry) -> bool:
    """Whether this machine has the complete logs of a run."""
    kept = store.kept(entry.run.id) if entry.status.final and store.is_kept(entry.run.id) else None
    return kept is not None and (len(kept.out), len(kept.err)) == (kept.out_size, kept.err_size)


def copy_saved(store: Store, run: Run, sink: Sink, lines: int | None) -> str:
    """Pass the locally saved logs of a finished run to `sink`. Return a note about them; empty if none are saved."""
    kept = store.kept(run.id)
    if kept is None:
        return ""
    truncated = []
    for which, text, size in (("out", kept.out, kept.out_size), ("err", kept.err, kept.err_size)):
        sink(which, _last(text, lines))  # type: ignore[arg-type]
        if len(text) < size:
            truncated.append(f"{len(text) >> 10} KB of {which}.log")
    return f"showing the last {' and '.join(truncated)} from the local copy" if truncated else "showing the local copy"


def _last(text: bytes, lines: int | None) -> bytes:
    return text if lines is None else b"".join(text.splitlines(keepends=True)[-lines:])


def follow(
    store: Store,
    run: Run,
    sink: Sink,
    *,
    lines: int | None = None,
    on_word: Callable[[str], None] = lambda _message: None,
) -> None:
    """Pass what a run writes to `sink` until it finishes. A lost connection is opened again, without a time limit."""
    from yurt.contexts import connect

    log = LogPosition(run.id, run.folder)
    pause, finished = 0.5, False
    files = connect.named_backend(run.context).files
    while True:
        before = (log.out, log.err)
        try:
            if log.folder:
                files.tail([log], _to(sink), follow=not finished, lines=lines)
            if finished:
                if log.gone and (note := copy_saved(store, run, sink, lines)):
                    on_word(f"the run folder on {run.context} is gone; {note}")
                return
            finished = _has_finished(store, run)
            log.folder = log.folder or _folder(store, run)
            pause = 0.5 if not log.gone or (log.out, log.err) != before else min(pause * 1.5, 10)
        except UnreachableError as error:
            on_word(f"{error.message}; reconnecting")
            pause = 0.5 if (log.out, log.err) != before else min(pause * 2, 15)
        if log.cut:
            on_word(about_cut(log))
            log.cut = 0
        lines = None if log.begun else lines
        if not finished:
            time.sleep(pause)


def _folder(store: Store, run: Run) -> str:
    """Return the folder of a run, which had none when its site was not reached yet."""
    entry = store.get(run.id)
    return entry.run.folder if entry is not None else ""


def _to(sink: Sink) -> LogSink:
    return lambda _log, which, part: sink(which, part)


def _has_finished(store: Store, run: Run) -> bool:
    from yurt.lifecycle.refresh.full_disk import checked
    from yurt.lifecycle.refresh.refresh import refresh_contexts

    refreshed = checked(store, [run.id], lambda: refresh_contexts(store, [run.context]))
    entry = store.get(run.id)
    return not refreshed.failed and (entry is None or entry.status.final)


def until_decided(store: Store, run: Run) -> Run:
    """Wait until a race has a winner, or is over; return it with the winner's context and folder."""
    from yurt.lifecycle.races.view import contexts_of
    from yurt.lifecycle.refresh import poll_interval
    from yurt.lifecycle.refresh.full_disk import checked
    from yurt.lifecycle.refresh.refresh import refresh_contexts

    pause = clocks().first_refresh
    while True:
        checked(store, [run.id], lambda: refresh_contexts(store, contexts_of(store, run)))
        entry = store.get(run.id)
        if entry is None or entry.status.final or entry.run.folder:
            return run if entry is None else entry.run
        time.sleep(pause)
        pause = min(pause * poll_interval.GROWTH, clocks().last_refresh)
