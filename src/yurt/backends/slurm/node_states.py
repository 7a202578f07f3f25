"""Slurm's words for the state of a node as one of yurt's states. Pure."""

from __future__ import annotations

MARKS = {"*": "NOT_RESPONDING", "~": "POWERED_DOWN", "%": "POWERING_DOWN", "$": "MAINT"}
"""What a character after a word means; others, such as # for powering up, do not change what the node can do."""

OTHER_MARKS = "#!@^-"

STATES = (
    ("down", {"DOWN", "ERROR", "FAIL", "FAILING", "NOT_RESPONDING", "NO_RESPOND"}),
    ("drained", {"DRAIN", "DRAINED", "DRAINING", "DRNG"}),
    ("maintenance", {"MAINT", "MAINTENANCE"}),
    ("reserved", {"RESERVED", "RESV"}),
    ("powered down", {"POWERED_DOWN", "POWERING_DOWN", "POWER_DOWN"}),
    ("mixed", {"MIXED", "MIX"}),
    ("allocated", {"ALLOCATED", "ALLOC"}),
    ("completing", {"COMPLETING", "COMP"}),
    ("idle", {"IDLE"}),
)
"""The first state with one of the node's words counts."""


def state_of(text: str) -> str:
    """Return the state of a node from words such as IDLE*, MIXED+DRAIN or IDLE+CLOUD+POWERED_DOWN."""
    words = {word.rstrip("".join(MARKS) + OTHER_MARKS) for word in text.upper().split("+")}
    words |= {meaning for mark, meaning in MARKS.items() if mark in text}
    return next((state for state, names in STATES if names & words), "unknown")
