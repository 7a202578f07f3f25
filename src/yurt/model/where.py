"""When a request would start: what a site is asked, what it answers, and what a user sees. Pure values."""

from __future__ import annotations

import msgspec

from yurt.model.live import Live
from yurt.model.run import Resources

SOON = 60.0
"""A start within so many seconds counts as now: a scheduler takes that long to look at its queue."""

REJECTED = "rejected: "
"""Before a reason that the scheduler gives now, but that the recorded facts of the site do not: it may be temporary."""


MOST = 8
"""How many test submissions a query of a site makes at most. Each uses up a job id of the site."""


class Ask(msgspec.Struct, frozen=True, kw_only=True):
    """A test submission to a partition. Values that are not None replace those of the request."""

    partition: str = ""
    """Empty for a site without partitions."""
    minutes: int | None = None
    gpus: int | None = None
    nodes: int | None = None

    @property
    def shaped(self) -> bool:
        """Whether it requests less than the user does."""
        return (self.minutes, self.gpus, self.nodes) != (None, None, None)


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """What a site is asked in one query."""

    resources: Resources
    options: dict[str, str | None] = {}
    """Further options of the scheduler."""
    asks: list[Ask] = []
    """Those that request less than the user does come last."""
    folder: str = ""
    """Where the job would start."""
    paths: list[str] = []
    """Paths of the site that must exist."""


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """The scheduler's answer to a test submission."""

    ask: Ask
    seconds: float | None = None
    """The expected wait in seconds, by the clock of the site; None if the scheduler does not say."""
    nodes: str = ""
    refusal: str = ""
    """Why the site would reject it; empty if it would not."""


class Forecast(msgspec.Struct, frozen=True, kw_only=True):
    """The answers of a site, and its state at the same moment."""

    live: Live
    answers: list[Answer] = []
    clock: float = 0.0
    """How many seconds the clock of the site is ahead of this machine's."""
    absent: list[str] = []
    """Those of the requested paths that do not exist on the site."""


class ExpectedStart(msgspec.Struct, frozen=True, kw_only=True):
    """When a request would start in a partition of a context."""

    context: str
    partition: str = ""
    """Empty on this machine, and if the whole context cannot take the request."""
    own: bool = False
    """Whether a run uses this partition without `--partition`."""
    seconds: float | None = None
    """The wait that the scheduler expects; null if it is unknown or the request can never start. It is outside of the
    range if earlier estimates of the site were nearly all too long, or too short."""
    low: float | None = None
    """The wait is at least this long in at least 80 % of the cases, together with `high`."""
    high: float | None = None
    """The wait is at most this long."""
    waits_for: str = ""
    """What makes it wait."""
    why_not: str = ""
    """Why it cannot start there, or why that is unknown; empty if it can."""
    unreachable: bool = False
    """Whether the site did not respond, so that nothing is known."""
    preempted: str = ""
    """What happens to preempted jobs of the partition; empty if jobs are not preempted."""
    nodes: str = ""
    """The nodes that the scheduler would use."""

    @property
    def possible(self) -> bool:
        return not self.why_not

    @property
    def likely(self) -> float | None:
        """The expected wait, or the end of the range that is nearest to it."""
        if self.seconds is None or self.low is None or self.high is None:
            return self.seconds
        return min(max(self.seconds, self.low), self.high)

    def later(self, passed: float) -> ExpectedStart:
        """Return what is left of the wait after so many seconds. A start that is due may still take a moment."""
        if self.seconds is None or self.low is None or self.high is None:
            return self
        return msgspec.structs.replace(
            self,
            seconds=max(0.0, self.seconds - passed),
            low=max(0.0, self.low - passed),
            high=max(self.high - passed, min(self.high, SOON)),
        )


class SmallerRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request for less that would start earlier."""

    context: str
    partition: str
    minutes: int | None = None
    """Its time limit; null if that is unchanged."""
    gpus: int | None = None
    """Its number of GPUs per node; null if that is unchanged."""
    nodes: int | None = None
    """Its number of nodes; null if that is unchanged."""
    seconds: float
    """Its expected wait."""


class TrackRecord(msgspec.Struct, frozen=True, kw_only=True):
    """How good the estimates of a context have been."""

    context: str
    within: int = 0
    """Runs whose start was within the range that was shown for them."""
    runs: int = 0
    """Runs with an estimate that have started."""
    waits: int = 0
    """Other runs whose wait is recorded."""


class Starts(msgspec.Struct, frozen=True, kw_only=True):
    """The expected starts of a request on one context."""

    context: str
    at: float
    """When the site was queried, by the clock of this machine."""
    rows: list[ExpectedStart] = []
    smaller: list[SmallerRequest] = []
    record: TrackRecord | None = None
    clock: float = 0.0
    """How many seconds the clock of the site is ahead of this machine's."""
    unasked: list[str] = []
    """Partitions that were not asked, because of the limit of test submissions."""
    absent: list[str] = []
    """Inputs that do not exist on the site."""
    pending: dict[str, float] = {}
    """The expected waits of your jobs in the queue, by job."""


class Estimate(msgspec.Struct, frozen=True, kw_only=True):
    """The wait that was expected for a run when it was submitted, in seconds, and the range that was shown."""

    run: str
    partition: str
    at: float
    seconds: float
    low: float
    high: float
    clock: float = 0.0
    """How many seconds the clock of the site was ahead of this machine's."""
