"""How much of an upload may be under way: as much as the link moves in a moment. Pure.

Other commands share the connection, and their bytes queue behind those of an upload. So an upload keeps only a fraction
of a second of data in the queue. The receiver reports each piece that it has written.
"""

from __future__ import annotations

PIECE = 1 << 16
"""Bytes after which the receiver reports."""

QUEUE = 0.15
"""Seconds of data that may queue on the link."""

LEAST, MOST = 4 * PIECE, 16 << 20
"""Limits of the bytes under way."""

MOMENT = 1.0
"""Seconds over which the rate is measured."""


class Pace:
    """The state of one upload: bytes written by the sender, and bytes that the receiver has reported."""

    def __init__(self, start: int | None) -> None:
        """`start`: where the receiver begins; None if it reports that first."""
        self.written = start or 0
        self.reported = start
        self._sent: list[tuple[int, float]] = []
        self._heard: list[tuple[float, int]] = []
        self._trip = float("inf")
        self._window = LEAST

    def allowance(self) -> int:
        """Return how many bytes the sender may write now."""
        return 0 if self.reported is None else max(0, self.reported + self._window - self.written)

    def wrote(self, count: int, now: float) -> None:
        self.written += count
        self._sent.append((self.written, now))

    def heard(self, reported: int, now: float) -> None:
        """Note a report, and adapt the window to the rate and the shortest trip so far."""
        if self.reported is None:
            self.written = self.reported = reported
            return
        self.reported = max(self.reported, reported)
        while self._sent and self._sent[0][0] <= reported:
            self._trip = min(self._trip, now - self._sent.pop(0)[1])
        self._heard.append((now, reported))
        while now - self._heard[0][0] > MOMENT:
            self._heard.pop(0)
        since, first = self._heard[0]
        if now - since > MOMENT / 8 and self._trip < float("inf"):
            rate = (reported - first) / (now - since)
            self._window = int(min(MOST, max(LEAST, rate * (self._trip + QUEUE))))
