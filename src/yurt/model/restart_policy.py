"""The table that decides whether a run is started again after a start ends, and how often. Pure.

A job applies it when a start ends: restart.sh is the same table in sh, and a test compares them on every case. yurt
applies it to a start that left no exit status (state.py); the next start then counts the failures itself.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from yurt.model.run import RestartPolicy

ASKED = 85
"""The exit status with which a command requests another start."""

KILLED = 137
STOPPED_BY = (KILLED, 138, 143)
"""Exit statuses of a command that was stopped with KILL, USR1 or TERM."""

PATIENCE = 3
"""How many lost starts a run with requeues survives at least. The limit stops runs that break node after node."""


class Past(msgspec.Struct, frozen=True, kw_only=True):
    """Counts over the previous starts."""

    limits: int = 0
    """How many reached their time limit or requested another start."""
    failures: int = 0
    """How many were lost or failed."""
    idle: bool = False
    """Whether this start and the previous one reached their time limit and saved nothing."""


Allows = Callable[[RestartPolicy, Past], bool]
Endings = tuple[tuple[tuple[int, ...] | None, tuple[str, ...] | None], ...]
"""Pairs of exit statuses and causes; None matches any."""


def _always(_policy: RestartPolicy, _past: Past) -> bool:
    return True


def _requeues(policy: RestartPolicy, _past: Past) -> bool:
    return policy.max_requeues > 0


def _requeues_used_up(policy: RestartPolicy, past: Past) -> bool:
    return 0 < policy.max_requeues <= past.limits


def _requeues_idle(policy: RestartPolicy, past: Past) -> bool:
    return policy.max_requeues > 0 and past.idle


def _failures(policy: RestartPolicy, past: Past) -> bool:
    return past.failures < max(policy.retries, PATIENCE if policy.max_requeues else 0)


def _retries(policy: RestartPolicy, past: Past) -> bool:
    return past.failures < policy.retries


def _errors(policy: RestartPolicy, past: Past) -> bool:
    return policy.retry_errors and past.failures < policy.retries


class Rule(msgspec.Struct, frozen=True):
    """One row of the table."""

    endings: Endings
    allows: Allows
    again: str = ""
    """The reason for the next start, as written to `end.K`; empty if there is none."""
    final: str = ""
    """The cause written to `exit.json`; empty to keep the cause of the ending."""


LIMIT: Endings = (((ASKED,), None), (STOPPED_BY, ("timeout",)))

# The first matching row decides.
RULES = (
    #    exit status, cause                            if the run allows     start again, or finish
    Rule((((0,), None),), _always),
    Rule(((None, ("cancelled", "out_of_memory")),), _always),
    Rule((((KILLED,), ("lost",)),), _failures, again="lost"),
    Rule((((KILLED,), ("lost",)),), _always, final="node_failed"),
    Rule((((ASKED, *STOPPED_BY), ("stopped",)),), _requeues, again="stopped"),
    Rule(LIMIT, _requeues_used_up, final="requeues"),
    Rule(LIMIT, _requeues_idle, final="idle"),
    Rule(LIMIT, _requeues, again="limit"),
    Rule(((None, ("unlaunched",)),), _retries, again="unlaunched"),
    Rule(((None, ("",)),), _errors, again="error"),
    Rule(((None, None),), _always),
)


class Decision(msgspec.Struct, frozen=True):
    """What follows the end of a start: another start for the reason `again`, or else the final `cause`."""

    again: str
    cause: str


def decide(status: int, cause: str, policy: RestartPolicy, past: Past) -> Decision:
    """Return what follows a start with this exit status and cause. An empty cause: the command exited by itself."""
    rule = next(each for each in RULES if _fits(each.endings, status, cause) and each.allows(policy, past))
    return Decision(rule.again, "" if rule.again else rule.final or cause)


def _fits(endings: Endings, status: int, cause: str) -> bool:
    return any(
        (statuses is None or status in statuses) and (causes is None or cause in causes) for statuses, causes in endings
    )
