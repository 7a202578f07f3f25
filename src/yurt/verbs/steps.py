"""The steps that submit saved runs, in order; passed to every refresh of a verb."""

from __future__ import annotations

from collections.abc import Sequence

from yurt.lifecycle.advance import Step
from yurt.lifecycle.env.tend import tend
from yurt.lifecycle.outbox.pending import send_pending

STEPS: Sequence[Step] = (send_pending, tend)
