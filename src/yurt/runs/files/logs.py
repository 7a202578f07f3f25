"""What a run wrote, by byte offset, so that a cut link costs no line and doubles none."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Literal

import msgspec

from yurt.backends.shell import scripts
from yurt.config import contexts
from yurt.errors import NotFoundError, UnreachableError, YurtError
from yurt.hosts import Host, host_of
from yurt.model.run import Run
from yurt.runs.refresh.refresh import look
from yurt.store import Store

SILENCE = 30.0
"""Seconds without a sign of life after which a link is taken for dead."""

Which = Literal["out", "err"]
Sink = Callable[[Which, bytes], None]


class Offsets(msgspec.Struct):
    """How far each stream was read."""

    out: int = 0
    err: int = 0


def copy(store: Store, run: Run, sink: Sink, *, lines: int | None = None) -> str:
    """What a run has written so far; of an ended one whose folder is out of reach or gone, what is kept here.

    Returns what to say of that. NotFoundError if there is nothing.
    """
    offsets = Offsets()
    entry = store.get(run.id)
    try:
        if _stream(host_of(contexts.named(run.context)), run, sink, offsets, follow=False, lines=lines):
            return ""
        why = f"its folder on {run.context} is gone"
    except YurtError as error:
        if offsets != Offsets() or not store.is_kept(run.id):
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
    offsets = Offsets()
    pause, ended = 0.5, False
    host = host_of(contexts.named(run.context))
    while True:
        before = msgspec.structs.replace(offsets)
        try:
            there = _stream(host, run, sink, offsets, follow=not ended, lines=lines)
            if ended:
                if not there and (said := from_here(store, run, sink, lines)):
                    on_word(f"its folder on {run.context} is gone; {said}")
                return
            ended = _over(store, run)
            pause = 0.5 if there or offsets != before else min(pause * 1.5, 10)
        except UnreachableError as error:
            on_word(f"{error.message}; trying again")
            pause = 0.5 if offsets != before else min(pause * 2, 15)
        lines = None if offsets != Offsets() else lines
        if not ended:
            time.sleep(pause)


def _over(store: Store, run: Run) -> bool:
    looked = look(store, [run.context])
    entry = store.get(run.id)
    return not looked.failed and (entry is None or entry.status.final)


def _stream(host: Host, run: Run, sink: Sink, offsets: Offsets, *, follow: bool, lines: int | None = None) -> bool:
    """Read one stretch of the logs; False if there is no such folder. Offsets move with what was handed out."""
    arguments = [run.folder, str(offsets.out), str(offsets.err), "yes" if follow else "", str(lines or "")]
    with host.stream(scripts.text("tail.sh"), *arguments, silence=SILENCE) as stream:
        held, name, left = b"", "", 0
        for chunk in stream:
            held += chunk
            while held:
                if not left:
                    line, newline, rest = held.partition(b"\n")
                    if not newline:
                        break
                    name, _, count = line.decode().partition(" ")
                    held = rest
                    if name.startswith("skip-"):
                        setattr(offsets, name[5:], int(count))
                    else:
                        left = int(count)
                    continue
                part, held = held[:left], held[left:]
                left -= len(part)
                _hand_out(sink, offsets, name, part)
        return stream.code != 44


def _hand_out(sink: Sink, offsets: Offsets, name: str, part: bytes) -> None:
    which: Which = "out" if name == "out" else "err"
    sink(which, part)
    setattr(offsets, which, getattr(offsets, which) + len(part))
