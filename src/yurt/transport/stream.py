"""The output of a script that runs on a host, as it comes."""

from __future__ import annotations

import os
import select
import time
from collections.abc import Iterator
from typing import IO, TYPE_CHECKING

from yurt.clocks import clocks
from yurt.errors import UnreachableError
from yurt.model.progress import report_slow, waiting
from yurt.transport import wire
from yurt.transport.ssh_errors import RETRY

if TYPE_CHECKING:
    from yurt.transport.base import Host
    from yurt.transport.command import Command

CHUNK = 1 << 16


class Stream:
    """The output of a running script, chunk by chunk. `code` and `err` are set after the last chunk."""

    def __init__(
        self,
        host: Host,
        parcel: wire.Parcel,
        command: Command,
        err: IO[bytes],
        *,
        start: float,
        silence: float | None,
        part: str = "",
    ) -> None:
        self._host, self._parcel, self._command, self._err = host, parcel, command, err
        self._start, self._silence = start, silence
        self._part = part
        """What the first output comes from; empty once it has come, or if nobody waits for it."""
        self.code: int | None = None

    @property
    def err(self) -> bytes:
        self._err.seek(0)
        return wire.errors_after(self._parcel, self._err.read())

    def __iter__(self) -> Iterator[bytes]:
        held, begun = b"", False
        while chunk := self._next(self._command.stdout.fileno(), begun):
            held += chunk
            if not begun:
                _noise, found, rest = held.partition(self._parcel.begin)
                if not found:
                    held = held[-len(self._parcel.begin) :]  # the rest is what dotfiles print
                    if time.monotonic() > self._start:
                        raise self._not_started()
                    continue
                held, begun = rest, True
            if sure := wire.certain(self._parcel.end, held):
                yield held[:sure]
                held = held[sure:]
        returned = self._command.wait()
        last = wire.unpack(self._parcel, self._parcel.begin + held) if begun else None
        if last is None or last.code is None:
            self._err.seek(0)
            raise self._host.lost(returned, self._err.read(), begun=begun)
        self.code = last.code
        if last.out:
            yield last.out

    def _next(self, descriptor: int, begun: bool) -> bytes:
        """Return the next bytes. UnreachableError if none arrive in time."""
        if not begun:
            self._await_start(descriptor)
        elif not self._is_ready(descriptor):
            raise UnreachableError(f"{self._host.name}: the connection timed out", code="timed-out", hint=RETRY)
        return os.read(descriptor, CHUNK)

    def _is_ready(self, descriptor: int) -> bool:
        """Wait until there is output, and report if that of a part takes long. False if none comes in time."""
        part, self._part = self._part, ""
        slow = clocks().slow
        if not part or (self._silence is not None and self._silence <= slow):
            return bool(select.select([descriptor], [], [], self._silence)[0])
        if select.select([descriptor], [], [], slow)[0]:
            return True
        report_slow(waiting(f"{part} on {self._host.name} to respond", self._silence))
        return bool(select.select([descriptor], [], [], self._silence and self._silence - slow)[0])

    def _await_start(self, descriptor: int) -> None:
        silence, left = self._host.silence(), max(0.0, self._start - time.monotonic())
        patience = left if silence is None else min(left, silence)
        if select.select([descriptor], [], [], min(patience, clocks().slow))[0]:
            return
        if patience > clocks().slow:
            self._host.report_slow()
            if select.select([descriptor], [], [], patience - clocks().slow)[0]:
                return
        if silence is not None and patience == silence:
            raise self._host.did_not_respond()
        raise self._not_started()

    def _not_started(self) -> UnreachableError:
        what = "the remote command did not start in time"
        return UnreachableError(f"{self._host.name}: {what}", code="timed-out", hint=RETRY)

    def close(self) -> None:
        """Stop the script if it still runs, and release its pipes."""
        self._command.end()
        self._err.close()
