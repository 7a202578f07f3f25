"""The steps that submit saved runs, in order; passed to every refresh of a verb."""

from __future__ import annotations

from collections.abc import Sequence

from yurt.contexts.advance import Step
from yurt.envs.of_runs.tend import tend
from yurt.lifecycle.outbox.pending import send_pending

STEPS: Sequence[Step] = (send_pending, tend)
