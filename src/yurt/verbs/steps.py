"""The steps that move on whatever waits, in order; handed to every refresh of a verb's."""

from __future__ import annotations

from collections.abc import Sequence

from yurt.lifecycle.advance import Step
from yurt.lifecycle.outbox.outbox import send_waiting

STEPS: Sequence[Step] = (send_waiting,)
