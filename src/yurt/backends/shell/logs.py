"""Reads logs by byte offset, so that a lost connection neither loses nor repeats a line."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from yurt.backends import scripts
from yurt.backends.shell import ownership
from yurt.model.files import LogPosition, LogSink
from yurt.model.log_chunks import LogChunks, check_header, hand_out
from yurt.model.site_words import whole
from yurt.transport.base import Host, refusal

SILENCE = 30.0
"""Seconds without data after which a connection counts as lost."""

NO_FOLDER = 44

NO_BYTES = 1 << 53
"""An offset after the end of every log."""

AT_ONCE = 1 << 20
"""Bytes that the first request asks for: of each log, at most so many. A longer one is then streamed."""


def one(host: Host, log: LogPosition, sink: LogSink, *, lines: int | None, follow: bool) -> None:
    """Read the logs of one run. With `follow`, until it finishes or is idle for long."""
    chunks = LogChunks(log, sink)
    if not follow:  # usually all of it: such a query can be repeated early
        answer = ownership.run(
            host, [log.folder], script(many=False), *_arguments(log, lines), "", str(AT_ONCE), prefetch=True
        )
        with host.reading():
            chunks.feed(answer.out)
        log.gone = answer.code == NO_FOLDER
        _check(host, answer.code, answer.errors)
        if not chunks.more:
            return
        lines = None
    arguments = [*_arguments(log, lines), "yes" if follow else ""]
    with ownership.stream(host, [log.folder], script(many=False), *arguments, silence=SILENCE) as stream:
        chunks = LogChunks(log, sink)
        for chunk in stream:
            with host.reading():
                chunks.feed(chunk)
        log.gone = stream.code == NO_FOLDER
        _check(host, stream.code, stream.err.decode(errors="replace").strip())


def _check(host: Host, code: int | None, errors: str) -> None:
    """RefusedError if a script could not read a log, so that what it sent is not all."""
    if code and code != NO_FOLDER:
        raise refusal(host.name, "cannot read the logs", errors)


def script(*, many: bool) -> str:
    """Return the script that reads the logs of one run, or of many."""
    return scripts.text("tail_send.sh") + scripts.text("tail_many.sh" if many else "tail.sh")


def _arguments(log: LogPosition, lines: int | None) -> list[str]:
    out, err = (NO_BYTES if log.only == "err" else log.out), (NO_BYTES if log.only == "out" else log.err)
    return [log.folder, str(out), str(err), str(lines or "")]


def many(
    host: Host,
    logs: Sequence[LogPosition],
    sink: LogSink,
    *,
    lines: int | None,
    seconds: int,
    on_end: Callable[[LogPosition], None],
) -> None:
    """Read the logs of several runs, for so many seconds; 0: only the existing output."""
    arguments = ["yes" if seconds else "", str(lines or ""), str(seconds)]
    for each in logs:
        arguments += [each.folder, str(each.out), str(each.err), "yes" if each.over else ""]
    with ownership.stream(
        host, [each.folder for each in logs], script(many=True), *arguments, silence=SILENCE
    ) as stream:
        held, name, left = b"", "", 0
        log = None
        for chunk in stream:
            held += chunk
            while held:
                if left and log is not None:
                    part, held = held[:left], held[left:]
                    left -= len(part)
                    hand_out(log, name, part, sink)
                    continue
                line, newline, rest = held.partition(b"\n")
                if not newline:
                    with host.reading():
                        check_header(held)
                    break
                held = rest
                with host.reading():
                    key, name, count = line.decode().split(" ")
                    log = logs[whole(key) - 1] if key not in ("-", "0") else None
                    left = _mark(log, name, whole(count))
                if name == "end" and log is not None:
                    on_end(log)
        _check(host, stream.code, stream.err.decode(errors="replace").strip())


def _mark(log: LogPosition | None, name: str, count: int) -> int:
    """Apply a header line to a log; return how many bytes of output follow it."""
    if log is None:
        return 0
    if name == "end":
        log.done = True
    elif name == "gone":
        log.gone = True
    elif name in ("cut-out", "cut-err"):
        log.cut = count
    elif name == "skip-out":
        log.out = count
    elif name == "skip-err":
        log.err = count
    else:
        return count
    return 0
