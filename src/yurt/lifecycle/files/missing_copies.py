"""Which results of a run exist only on its site, because this machine has no copy of their current version; and why."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from enum import StrEnum

from yurt.lifecycle.files import local_copy
from yurt.model import layout
from yurt.model.files import NOTHING, RESULT_PARTS, UNMEASURED, Measures, Survey, count, size
from yurt.model.run import Run
from yurt.store import Copy, Store


class Why(StrEnum):
    """Why a part of the results has no copy. The texts are completed with the parts, such as `its outputs`."""

    NEVER = "{parts} were never fetched"
    LEFT_OUT = "{parts} were not fetched"
    PARTIAL = "{parts} were only partly fetched"
    EARLY = "{parts} were fetched before {who} finished"
    DELETED = "{parts} were deleted or changed on this machine after they were fetched"
    CHANGED = "{parts} changed on {context} after they were fetched"
    UNREADABLE = "{parts} cannot be read on {context}, so yurt cannot compare them with the copy"


Missing = Mapping[str, Mapping[str, Why]]
"""By run, or task of a sweep, and by part of its results."""


def missing_copies(store: Store, run: str, has: Survey) -> Missing:
    """Return the parts of a run's results, or of a sweep's tasks, whose current version exists only on the site."""
    missing = {name: _missing(store, name, measures) for name, measures in has.results(run)}
    return {name: parts for name, parts in missing.items() if parts}


def describe(run: Run, missing: Missing) -> str:
    """Return why this machine has no copy of these results, as a sentence."""
    found: dict[Why, dict[str, list[str]]] = {}
    for why in Why:
        for name, parts in missing.items():
            if alike := [part for part in RESULT_PARTS if parts.get(part) is why]:
                found.setdefault(why, {})[name] = alike
    return ", and ".join(_sentence(run, why, tasks) for why, tasks in found.items())


def _sentence(run: Run, why: Why, by_task: Mapping[str, Sequence[str]]) -> str:
    parts = " and ".join(
        part.replace(layout.WORK, "files in the working directory")
        for part in RESULT_PARTS
        if any(part in each for each in by_task.values())
    )
    if run.tasks:
        return why.format(parts=f"the {parts} of {len(by_task)} of its tasks", who="they", context=run.context)
    if why is Why.NEVER:
        return f"it was never fetched, so it has the only copy of its {parts}"
    return why.format(parts=f"its {parts}", who="it", context=run.context)


def _missing(store: Store, run: str, measures: Measures) -> dict[str, Why]:
    wanted = measures.by_part()
    missing = {part for part, each in wanted.items() if each != NOTHING}
    copies = store.copies(run) if missing else []
    for copy in copies:
        fetched = copy.measures.by_part()
        same = {part for part in missing if fetched[part] == wanted[part] != UNMEASURED}
        if same and _is_here(copy, [wanted[part] for part in same]):
            missing -= same
    return {part: _why(store, run, part, wanted[part], copies) for part in wanted if part in missing}


def _why(store: Store, run: str, part: str, measure: str, copies: Sequence[Copy]) -> Why:
    if not copies:
        return Why.NEVER
    complete = [each for copy in copies if (each := copy.measures.by_part()[part])]
    if complete:
        if measure == UNMEASURED:
            return Why.UNREADABLE
        return Why.DELETED if measure in complete else Why.CHANGED
    if part == layout.CHECKPOINTS and all(copy.measures.outputs for copy in copies):  # fetched without --all
        return Why.LEFT_OUT
    entry = store.get(run)
    ended = entry.status.ended if entry is not None else None
    return Why.EARLY if ended is not None and copies[0].at < ended else Why.PARTIAL


def _is_here(copy: Copy, measures: Sequence[str]) -> bool:
    """Whether a local folder still contains what was fetched; of a copy of an older yurt, at least as much."""
    target = os.fsdecode(copy.target)
    if copy.files:
        return local_copy.is_complete(target, copy.files)
    files = bytes_ = 0
    for folder, _folders, names in os.walk(target):
        for name in names:
            try:
                bytes_ += os.lstat(f"{folder}/{name}").st_size
            except OSError:
                continue
            files += 1
    return files >= sum(count(each) for each in measures) and bytes_ >= sum(size(each) for each in measures)
