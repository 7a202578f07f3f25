"""Chooses the site whose disk decides a race, and how the jobs of each candidate reach it. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Literal

import msgspec

from yurt.backends.kinds import kind_of
from yurt.errors import UserError, one_of
from yurt.model.context import Context
from yurt.model.race import Mode
from yurt.model.resources import parse_wait

Way = Literal["here", "ssh", "wait", "carry", "out"]
"""How a job learns who holds the claim: it reads the folder; asks by ssh; waits for a yurt command; starts one. Or it
cannot, and its candidate takes no part."""

LONGEST = 120
"""Seconds that a job waits for an answer at most, with a node that does nothing."""

TRIES = 60
"""Seconds for which a job tries to reach the arbiter by ssh."""


class Choice(msgspec.Struct, frozen=True):
    """The arbiter, as the number of a candidate, and the way of each candidate."""

    arbiter: int
    ways: list[Way]


def choose(contexts: Sequence[Context], mode: Mode | None, silent: Collection[int] = ()) -> Choice:
    """Return the best choice. UserError if there is none, with what to set.

    `silent`: the numbers of the candidates whose sites do not respond now, of which no one can be the arbiter.
    """
    found: list[tuple[tuple[int, int, int, int], Choice]] = []
    for number, arbiter in enumerate(contexts):
        ways = [way(each, arbiter, mode, silent=at in silent) for at, each in enumerate(contexts)]
        if number not in silent and all(ways):
            known = [each for each in ways if each is not None]
            rank = (known.count("out"), known.count("wait"), int(kind_of(arbiter.type).here), number)
            found.append((rank, Choice(number, known)))
    if found:
        return min(found, key=lambda each: each[0])[1]
    raise _impossible(contexts, mode)


def way(candidate: Context, arbiter: Context, mode: Mode | None, *, silent: bool = False) -> Way | None:
    """Return how jobs of a candidate can reach the folder of an arbiter; None if they cannot.

    On a silent site no key can be made now, so its jobs wait; if they may not, the candidate is out.
    """
    if same_site(candidate, arbiter):
        return "here"
    if kind_of(candidate.type).here:
        return "carry"
    asked = not kind_of(arbiter.type).here and mode != "grant" and arbiter.race_address
    if asked and candidate.race_keys and not silent:
        return "ssh"
    if mode != "arbiter" and wait_of(candidate):
        return "wait"
    return "out" if silent else None


def same_site(one: Context, other: Context) -> bool:
    """Whether jobs of two contexts see the same disk."""
    return (one.type, one.slurm_url, one.storage_dir) == (other.type, other.slurm_url, other.storage_dir)


def wait_of(context: Context) -> int:
    """Return for how many seconds a job may wait for an answer; 0 if it may not."""
    return min(LONGEST, LONGEST if context.race_wait is None else parse_wait(context.race_wait))


def _impossible(contexts: Sequence[Context], mode: Mode | None) -> UserError:
    names = list(dict.fromkeys(each.name for each in contexts if not kind_of(each.type).here))
    if mode == "arbiter":
        return UserError(
            "no cluster of this race lets the others ask it by ssh",
            code="usage",
            hint=f"set `race_address` for one of them and `race_keys: true` for the others, or use `--race-mode grant`"
            f" (`yurt context edit {names[0]}`)",
        )
    lacking = [each.name for each in contexts if not kind_of(each.type).here and not wait_of(each)]
    other = "" if mode == "grant" else ", or `race_address` and `race_keys` for ssh"
    return UserError(
        f"jobs of this race cannot find out which cluster was first: {one_of(list(dict.fromkeys(lacking)))} must allow"
        " them to wait for a yurt command",
        code="usage",
        hint=f"set `race_wait: 2m` with `yurt context edit {lacking[-1]}`{other}",
    )
