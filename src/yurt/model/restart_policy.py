"""After which ending of a start a run is started again, and how often: the one table. Pure.

A job decides by it when a start ends: restart.sh says the same in sh, and a test runs it on every case. yurt decides
by it for a start that left no ending (state.py); how often is then counted by the next start itself.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from yurt.model.run import RestartPolicy

ASKED = 85
"""The exit status by which a command asks to be started again."""

KILLED = 137
STOPPED_BY = (KILLED, 138, 143)
"""Exit statuses of a command that ends by KILL, USR1 or TERM, which is how it is stopped."""

PATIENCE = 3
"""How often at least a run with requeues may be lost: what breaks node after node is not started for ever."""


class Past(msgspec.Struct, frozen=True, kw_only=True):
    """What counts of the starts until now."""

    limits: int = 0
    """How many ended at their time limit, or asked to be started again."""
    failures: int = 0
    """How many were lost, or failed."""
    idle: bool = False
    """Whether this start and the one before it ended at their limit, and neither saved anything."""


Allows = Callable[[RestartPolicy, Past], bool]
Endings = tuple[tuple[tuple[int, ...] | None, tuple[str, ...] | None], ...]
"""Pairs of exit statuses and causes; None is any."""


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
    """A row of the table."""

    endings: Endings
    allows: Allows
    again: str = ""
    """Why it is started again, as `end.K` has it; empty if it is not."""
    final: str = ""
    """The cause that `exit.json` gets; empty if it is the one of the ending."""


LIMIT: Endings = (((ASKED,), None), (STOPPED_BY, ("timeout",)))

# The first row that fits decides.
RULES = (
    #    exit status, cause                            if the run allows     it is started again, or ends
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
    """What follows the end of a start: another start for this reason; or else the end of the run, for this cause."""

    again: str
    cause: str


def decide(status: int, cause: str, policy: RestartPolicy, past: Past) -> Decision:
    """What follows a start that ended with this exit status for this cause. An empty cause: it ended by itself."""
    rule = next(each for each in RULES if _fits(each.endings, status, cause) and each.allows(policy, past))
    return Decision(rule.again, "" if rule.again else rule.final or cause)


def _fits(endings: Endings, status: int, cause: str) -> bool:
    return any(
        (statuses is None or status in statuses) and (causes is None or cause in causes) for statuses, causes in endings
    )
