"""How a run stands, as far as every machine that looks at it can know; and how machines come to agree. Pure.

The first yurt that sees a run ended puts its Standing into the run folder, as status.json, and all others adopt it.
"""

from __future__ import annotations

import msgspec

from yurt.model.run import FINAL, State, Status
from yurt.model.state import Ending, Sighting, settle


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """How a run stands; the content of status.json when it has ended."""

    state: State
    reason: str = ""
    """Why, in words."""
    native: str = ""
    """The scheduler's own word and reason."""
    job: str = ""
    node: str = ""
    started: float | None = None
    ended: float | None = None
    exit_code: int | None = None
    signal: int | None = None
    restarts: int = 0
    seconds: float | None = None
    """How long it ran, over all its starts; known when it has ended."""


def standing(status: Status) -> Standing:
    """What of a status is no bookkeeping of one machine's."""
    fields = {name: getattr(status, name) for name in Standing.__struct_fields__}
    if status.state in ("queued", "held", "requeued"):  # of its next start nobody knows; of its last one, not everybody
        fields |= {"node": "", "started": None}
    return Standing(**fields)


def adopt(status: Status, verdict: Standing | None, ending: Ending | None, now: float) -> Status:
    """A status after what stands in the run folder is known. A job's own ending outranks what others made of it."""
    after = status
    if verdict is not None and verdict.state in FINAL:
        after = msgspec.structs.replace(status, **msgspec.structs.asdict(verdict), missing_since=None, cancel=False)
    if ending is not None and after.exit_code is None:
        after = settle(after, Sighting(ending=ending), now)
    return after


def read(text: bytes) -> Standing | None:
    """What stands in status.json; None if nothing does, or a newer yurt's words for it are not known here."""
    try:
        return msgspec.json.decode(text, type=Standing) if text else None
    except msgspec.MsgspecError:
        return None
