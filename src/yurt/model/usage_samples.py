"""Reads the samples that a job records of what it uses: the file `usage` in a run folder. Pure.

The format is in backends/job/sampler.sh. Lines that a full disk or a killed job cut off are skipped.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from yurt.model.usage import Usage

SHORT = 1.0
"""Seconds in which many programs have not allocated their memory yet."""

LONGEST_NUMBER = 12
"""Digits of a number of seconds, or of MB."""

RISE = 1.05
"""A peak that was so many times the one before in the last sample may have risen further after it."""


class Sample(NamedTuple):
    """One line: what a start had used after some time."""

    start: int
    seconds: float
    cpu: float
    """CPU seconds so far."""
    memory: int
    """MB, since the last sample; 0 if unknown."""
    peak: int
    """MB, in this start so far; 0 if unknown."""
    gpu: int | None
    """Mean utilization in percent, since the last sample."""
    gpu_memory: int | None
    """MB on one GPU."""


class UsageCurve(msgspec.Struct, frozen=True, kw_only=True):
    """What a run used over time, one value for each sample; null where nothing was measured."""

    seconds: list[float] = []
    """Time since its first start, without the time between starts."""
    cpus: list[float] = []
    """The mean number of busy CPUs since the last sample."""
    memory_mb: list[int | None] = []
    """The most memory since the last sample."""
    gpu_percent: list[int | None] = []
    """Mean utilization of its GPUs since the last sample."""


def samples(text: bytes) -> list[Sample]:
    """Return the samples in a file, in order."""
    found = []
    for line in text.split(b"\n")[:-1]:
        fields = line.split(b" ")
        if len(fields) != 8:
            continue
        start, seconds, cpu, steps, memory, peak, gpu, gpu_memory = fields
        times = _has_digits(seconds, 1) and _has_digits(cpu, 2) and _has_digits(steps, 2)
        counts = _is_number(start) and _is_number(memory) and _is_number(peak)
        if not (times and counts and _is_count(gpu) and _is_count(gpu_memory)):
            continue
        found.append(
            Sample(int(start), float(seconds), float(cpu), int(memory), int(peak), _number(gpu), _number(gpu_memory))
        )
    return found


def _has_digits(text: bytes, digits: int) -> bool:
    """Whether a number is complete: it has so many digits after the point."""
    whole, _point, rest = text.partition(b".")
    return _is_number(whole) and rest.isdigit() and len(rest) == digits


def _is_count(text: bytes) -> bool:
    return text == b"-" or _is_number(text)


def _is_number(text: bytes) -> bool:
    """Whether it is a number that a machine can have; a run could write any into the file."""
    return text.isdigit() and len(text) <= LONGEST_NUMBER


def _is_head(fields: Sequence[bytes]) -> bool:
    """Whether these are the fields of the line before the samples of a start."""
    if len(fields) != 5 or fields[0] != b"=" or not (_is_number(fields[1]) and _is_number(fields[2])):
        return False
    return _is_count(fields[3]) and _is_count(fields[4])


def usage(text: bytes, *, ended: bool = False) -> Usage | None:
    """Return what a run used according to its samples; None if there is none.

    If it has ended, what it used after the last sample is unknown, and so may be the peak of its memory.
    """
    found = samples(text)
    if not found:
        return None
    last = {each.start: each for each in found}
    heads = [fields for line in text.split(b"\n") if _is_head(fields := line.split(b" "))]
    nodes, cpus, limit = (_number(each) for each in heads[-1][2:]) if heads else (None, None, None)
    gpu = [(each.gpu, span) for each, span in zip(found, spans(found), strict=True) if each.gpu is not None]
    time = sum(span for _percent, span in gpu)
    return Usage(
        seconds=round(sum(each.seconds for each in last.values()), 1),
        cpu_seconds=round(sum(each.cpu for each in last.values()), 2),
        memory_mb=_peak(found) if ended else max(each.peak for each in found) or None,
        gpu_percent=round(sum(percent * span for percent, span in gpu) / time, 1) if time else None,
        gpu_memory_mb=max((each.gpu_memory for each in found if each.gpu_memory is not None), default=None),
        nodes=nodes or 1,
        cpus=cpus,
        memory_limit_mb=limit or None,
    )


def _peak(found: Sequence[Sample]) -> int | None:
    """Return the most memory; None if the samples may have missed it. The same rule as at the end of a job."""
    most = max(each.peak for each in found)
    for start in {each.start for each in found if each.peak == most}:
        peaks = [(each.seconds, each.peak) for each in found if each.start == start and each.peak]
        before = max((peak for _seconds, peak in peaks[:-1]), default=0)
        if peaks and peaks[-1][0] >= SHORT and peaks[-1][1] <= RISE * before:
            return most
    return None


def spans(found: Sequence[Sample]) -> list[float]:
    """Return the seconds since the sample before each, in the same start."""
    before = [None, *found][: len(found)]
    return [
        max(0.1, each.seconds - (last.seconds if last is not None and last.start == each.start else 0))
        for each, last in zip(found, before, strict=True)
    ]


def curve(text: bytes) -> UsageCurve:
    """Return what a run used over time."""
    found = samples(text)
    times, cpus = [], []
    ended, last = 0.0, None
    for each, span in zip(found, spans(found), strict=True):
        again = last is None or last.start != each.start
        if last is not None and again:
            ended += last.seconds
        times.append(round(ended + each.seconds, 1))
        cpus.append(round(max(0.0, each.cpu - (0 if again or last is None else last.cpu)) / span, 2))
        last = each
    return UsageCurve(
        seconds=times,
        cpus=cpus,
        memory_mb=[each.memory or None for each in found],
        gpu_percent=[each.gpu for each in found],
    )


def _number(text: bytes) -> int | None:
    return None if text == b"-" else int(text)
