"""Turns what a run logged with yurt.log, and its parameters, into event files for TensorBoard."""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from yurt import private
from yurt.model import metric_rows, params
from yurt.model.metric_rows import number

METRICS_FILE = "events.out.tfevents.0000000000.yurt"
HPARAMS_FILE = "events.out.tfevents.9999999999.yurt.hparams"
"""The last name in a folder: TensorBoard uses the first hyperparameters it finds, so those of the script itself."""

PIECE = 4 << 20
"""Bytes that are converted at a time."""

LARGEST_STEP = 2**63 - 1

_OWN = ("time", "step", "rank")


class Converted:
    """An event file that is made from metrics.jsonl, and continued as that grows."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._offset = 0
        self._rows = 0
        self._time = 0.0

    def follow(self, source: Path) -> None:
        """Convert the complete lines that are new. OSError if a file cannot be read or written."""
        with source.open("rb") as stream:
            stream.seek(self._offset)
            held = b""
            while piece := stream.read(PIECE):
                lines, newline, held = (held + piece).rpartition(b"\n")
                if newline:
                    self._append(lines)
                    self._offset += len(lines) + 1

    def _append(self, lines: bytes) -> None:
        events = b"".join(self._events(lines))
        with open(self._file, "ab", opener=private.opener) as stream:
            if stream.tell() == 0:
                stream.write(header(self._time))
            stream.write(events)

    def _events(self, lines: bytes) -> list[bytes]:
        from tensorboard.compat.proto.event_pb2 import Event
        from tensorboard.compat.proto.summary_pb2 import Summary

        made = []
        for line in lines.split(b"\n"):
            row = _row(line)
            if row is None:
                continue
            at, self._rows = self._rows, self._rows + 1
            self._time = number(row.get("time")) or self._time
            values = [
                Summary.Value(tag=name, simple_value=value)
                for name, each in row.items()
                if name not in _OWN and (value := number(each)) is not None
            ]
            if values:
                event = Event(wall_time=self._time, step=_step(row.get("step"), at), summary=Summary(value=values))
                made.append(record(event.SerializeToString()))
        return made


def write_hparams(file: Path, values: Mapping[str, Any], *, trial: str, started: float) -> None:
    """Write the parameters of a run as hyperparameters, into an event file of their own."""
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.plugins.hparams.summary_v2 import hparams_pb

    plain = {key: _hparam(value) for key, value in values.items()}
    summary = hparams_pb(plain, trial_id=trial, start_time_secs=started)
    event = Event(wall_time=started, step=0, summary=summary)
    private.write(file, header(started) + record(event.SerializeToString()))


def header(at: float) -> bytes:
    """Return the first record of an event file."""
    from tensorboard.compat.proto.event_pb2 import Event

    return record(Event(wall_time=at, file_version="brain.Event:2").SerializeToString())


def record(content: bytes) -> bytes:
    """Return one record of an event file."""
    from tensorboard.compat.tensorflow_stub.pywrap_tensorflow import masked_crc32c

    size = struct.pack("<Q", len(content))
    sums = [struct.pack("<I", masked_crc32c(each)) for each in (size, content)]
    return size + sums[0] + content + sums[1]


def _row(line: bytes) -> dict[str, Any] | None:
    """Return a line that the first process of the run logged."""
    row = metric_rows.row(line)
    return None if row is None or row.get("rank") else row


def _step(value: Any, at: int) -> int:
    """Return the step of a row; its number if it has none."""
    step = number(value)
    if step is None or not math.isfinite(step):
        return at
    exact = value if isinstance(value, int) else int(step)
    return max(-LARGEST_STEP, min(LARGEST_STEP, exact))


def _hparam(value: Any) -> bool | float | str:
    """Return a parameter as TensorBoard has them; a number that was typed as text is a number."""
    value = params.typed(value) if isinstance(value, str) else value
    if isinstance(value, bool):
        return value
    found = None if isinstance(value, str) else number(value)
    return params.summary(value) if found is None else found
