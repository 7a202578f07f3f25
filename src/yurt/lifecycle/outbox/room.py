"""Warns about a submission that may overflow its storage tier: from its declared size, or those of earlier runs.

The free space is queried together with the submission, and only if the run may need much.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from yurt.model.run import Plan

if TYPE_CHECKING:
    from yurt.model.storage import TierPlace, TierUse
    from yurt.store import Store

EARLIER = 20
"""How many finished runs of the project are compared."""

MUCH, MANY = 100_000_000, 1000
"""Bytes and files up to which earlier runs are no reason to query the free space."""


class Need(msgspec.Struct, frozen=True):
    """What a run, or all tasks of a sweep, may write."""

    bytes: int
    files: int
    why: str
    tier: TierPlace
    """Where: its path is yurt's folder."""


def need(store: Store, plan: Plan) -> Need | None:
    """Return what a run may write; None if that is unknown or little. Queries no site."""
    run = plan.run
    if run.purpose != "run":
        return None
    declared = next((each.value for each in run.settings if each.key == "output_size"), None)
    if declared:
        from yurt.model.quotas import read_amount

        size, files = read_amount(str(declared)) or (None, None)
        why = f"its output_size is {declared}"
    else:
        size, files = _earlier(store, run.project, run.command)
        why = ""
    count = max(1, run.tasks)
    size, files = (size or 0) * count, (files or 0) * count
    if not declared and size < MUCH and files < MANY:
        return None
    return Need(size, files, why, _tier(plan))


def warning(what: Need, use: TierUse | None, plan: Plan) -> str:
    """Return a warning if the run may not fit; else an empty text."""
    if use is None:
        return ""
    from yurt.model.sizes import amount
    from yurt.storage.room import counted, lacking, room

    free, needed = lacking(room(what.tier, use), what.bytes, what.files)
    if not needed:
        return ""
    tasks = plan.run.tasks
    why = what.why
    if not why:
        most = counted(what.files // max(1, tasks)) if "file" in needed else amount(what.bytes // max(1, tasks))
        why = f"earlier runs of this command used up to {most}"
    each = " each" if tasks else ""
    who = f"its {tasks} tasks" if tasks else "it"
    return f"{what.tier.name} on {plan.run.context} has {free}, but {who} may need {needed} ({why}{each})"


def _earlier(store: Store, project: str, command: Sequence[str]) -> tuple[int, int]:
    """Return the most that earlier runs of this program wrote: bytes and files."""
    same = program(command)
    found = [
        (size, files)
        for text, _run, size, files in store.earlier_sizes(project, EARLIER)
        if program(msgspec.json.decode(text, type=list[str])) == same
    ]
    return max((size for size, _files in found), default=0), max((files for _size, files in found), default=0)


SCRIPTS = (".py", ".sh", ".bash", ".R", ".r", ".jl", ".pl", ".m", ".lua", ".js")
"""How names of scripts end: what follows them are arguments."""


def program(command: Sequence[str]) -> list[str]:
    """Return the words of a command before its arguments: `python train.py` of `python train.py 3 --lr 0.1`."""
    found: list[str] = []
    for word in command:
        if word.startswith("--") or "=" in word:
            break
        found.append(word)
        if word.endswith(SCRIPTS):
            break
    return found


def _tier(plan: Plan) -> TierPlace:
    """Return the tier of a run folder, with yurt's folder as its path."""
    from yurt.config import contexts, facts
    from yurt.errors import YurtError
    from yurt.model import layout
    from yurt.model.storage import TierPlace
    from yurt.storage.tiers import of_path, tiers

    base = layout.chain(plan.run.folder)[0]
    try:
        context = contexts.named(plan.run.context)
        tier = of_path(tiers(context, facts.last(context)), base)
    except YurtError:
        tier = None
    return msgspec.structs.replace(tier or TierPlace(name="the disk", path=base), path=base)
