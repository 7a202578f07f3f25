"""What a run wrote, by byte offset, so that a cut link costs no line and doubles none."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Literal

import msgspec

from yurt.config import contexts
from yurt.errors import NotFoundError, UnreachableError, YurtError
from yurt.hosts import Host, host_of
from yurt.lifecycle.refresh.refresh import refresh_contexts
from yurt.model.run import Run
from yurt.store import Store

# Chunks as a line "out|err COUNT" and COUNT bytes. Following ends when the run has ended and all was sent, or when
# nothing came for long.
# A line "- 0" now and then shows that the link lives.
TAIL = """\
cd "$1" 2> /dev/null || exit 44
out=$2 err=$3 follow=$4 last=$5
size() { size=$(wc -c < "$1" 2> /dev/null) || size=0; size=$((size)); }
send() { # send NAME FILE OFFSET: what is there beyond the offset
  size "$2"
  offset=$3
  while [ "$offset" -lt "$size" ]; do
    count=$((size - offset))
    [ "$count" -le 1048576 ] || count=1048576
    printf '%s %s\\n' "$1" "$count"
    tail -c "+$((offset + 1))" "$2" | head -c "$count"
    offset=$((offset + count)) busy=1
  done
}
if [ -n "$last" ]; then # only the last lines of what is there
  for name in out err; do
    size "$name.log"
    [ "$size" -gt 0 ] && count=$(head -c "$size" "$name.log" | tail -n "$last" | wc -c) || count=0
    printf 'skip-%s %s\\n' "$name" $((size - count))
    [ "$name" = out ] && out=$((size - count)) || err=$((size - count))
  done
fi
pause=0.5 idle=0
while :; do
  busy= over=
  [ -e exit.json ] || [ -e exit.json.d ] && over=1
  send out out.log "$out"
  out=$offset
  send err err.log "$err"
  err=$offset
  [ -n "$over" ] || [ -z "$follow" ] && exit 0
  if [ -n "$busy" ]; then pause=0.5 idle=0; else idle=$((idle + 1)); fi
  [ "$idle" -lt 20 ] || pause=1
  [ "$idle" -lt 35 ] || exit 0 # it may have ended without an ending: let the caller look
  printf -- '- 0\\n'
  sleep "$pause" 2> /dev/null || sleep 1
done
"""

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
    refreshed = refresh_contexts(store, [run.context])
    entry = store.get(run.id)
    return not refreshed.failed and (entry is None or entry.status.final)


def _stream(host: Host, run: Run, sink: Sink, offsets: Offsets, *, follow: bool, lines: int | None = None) -> bool:
    """Read one stretch of the logs; False if there is no such folder. Offsets move with what was handed out."""
    arguments = [run.folder, str(offsets.out), str(offsets.err), "yes" if follow else "", str(lines or "")]
    with host.stream(TAIL, *arguments, silence=SILENCE) as stream:
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
