"""The ledger that the user's code writes: a line when it starts, one when it ends, heartbeats in between. Pure."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

WORK = """\
ledger=$1 rest=$2 pace=$3
say() { echo "$1 $YURT_RUN_ID $YURT_RESTARTS $(hostname) $(date +%s.%N)" >> "$ledger"; }
say start
[ "$YURT_RESTARTS" = 0 ] || rest=2
if [ -n "$pace" ]; then
  until=$(($(date +%s) + rest))
  while [ "$(date +%s)" -lt "$until" ]; do
    say beat
    sleep "$pace"
  done
else
  sleep "$rest"
fi
say end
"""
"""The user's code. Arguments: the ledger, the seconds that its first start takes, the pause between heartbeats."""


class Start(msgspec.Struct):
    """One start of a run's code, from its first line to its last."""

    run: str
    generation: int
    host: str
    first: float
    last: float
    ended: bool = False


def read(text: str) -> list[Start]:
    """Return all starts, in the order of their first lines. Raises IndexError for a line without a start."""
    starts: list[Start] = []
    for line in text.splitlines():
        word, run, generation, host, at = line.split()
        if word == "start":
            starts.append(Start(run, int(generation), host, float(at), float(at)))
            continue
        own = [each for each in starts if (each.run, each.generation, each.host) == (run, int(generation), host)]
        own[-1].last = max(own[-1].last, float(at))
        own[-1].ended = own[-1].ended or word == "end"
    return starts


def overlaps(starts: Iterable[Start]) -> list[tuple[Start, Start]]:
    """Return pairs of starts of one run that ran at the same time."""
    found: list[tuple[Start, Start]] = []
    seen: list[Start] = []
    for start in sorted(starts, key=lambda each: each.first):
        found += [(other, start) for other in seen if other.run == start.run and other.last > start.first]
        seen.append(start)
    return found
