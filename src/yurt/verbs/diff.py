"""diff: what differs between two runs, of whatever projects and contexts."""

from __future__ import annotations

from pathlib import Path

import msgspec

from yurt.config import paths
from yurt.errors import RefusedError
from yurt.lifecycle.files import metrics
from yurt.model.compare import Row, Side, compare
from yurt.model.progress import Event, Watch, unwatched
from yurt.snapshot import differ
from yurt.snapshot.differ import Change
from yurt.store import Entry, Store


class CodeDifference(msgspec.Struct, frozen=True, kw_only=True):
    """From the code of the left run to that of the right one."""

    same: bool
    unknown: str = ""
    """Why it is not known what differs."""
    changes: list[Change] = []
    patch: str = ""
    """As `git diff` shows it; bytes that are no text stand as \\xNN. Empty with --stat."""


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """Two runs side by side."""

    left: str
    right: str
    same: bool
    rows: list[Row]
    """What differs; with --all, everything."""
    code: CodeDifference


def diff(
    store: Store, left: Entry, right: Entry, *, everything: bool = False, stat: bool = False, watch: Watch = unwatched
) -> Difference:
    """Compare two runs as they are known on this machine."""
    rows = compare(*(Side(each.run, each.status, _metrics(store, each)) for each in (left, right)))
    watch(Event("comparing the code"))
    code = _code(store, left, right, patch=not stat)
    return Difference(
        left=left.run.id,
        right=right.run.id,
        same=code.same and all(row.same for row in rows),
        rows=[row for row in rows if everything or not row.same],
        code=code,
    )


def _metrics(store: Store, entry: Entry) -> dict[str, object]:
    found = metrics.last(store, entry)
    steps = {"step": found[-1].step} if found and found[-1].step is not None else {}
    return {**steps, **{each.name: each.value for each in found}}


def patch(store: Store, left: Entry, right: Entry, *, colour: bool) -> bytes:
    """The difference of the code alone, in the bytes of the files; of runs of which `diff` knows it."""
    return _pair(store, left, right).patch(colour=colour)


def _code(store: Store, left: Entry, right: Entry, *, patch: bool) -> CodeDifference:
    trees = left.run.code.tree, right.run.code.tree
    if trees[0] == trees[1]:
        return CodeDifference(same=True)
    for entry in (left, right):
        run = entry.run
        if not run.code.tree:
            return CodeDifference(same=False, unknown=f"run {run.id} has no snapshot of its code")
        if not differ.is_here(_store_of(store, entry), run.code.tree):
            return CodeDifference(same=False, unknown=f"the code of run {run.id} is not on this machine any more")
    pair = _pair(store, left, right)
    try:
        changes = pair.changes()
        text = pair.patch().decode(errors="backslashreplace") if patch else ""
    except RefusedError as error:  # a store that lost a part of it
        return CodeDifference(same=False, unknown=error.message)
    return CodeDifference(same=False, changes=changes, patch=text)


def _pair(store: Store, left: Entry, right: Entry) -> differ.Pair:
    sides = [(_store_of(store, each), each.run.code.tree) for each in (left, right)]
    return differ.Pair(sides[0], sides[1])


def _store_of(store: Store, entry: Entry) -> Path:
    """Where this machine has the code of a run, if it has: its plan may have been made on another one."""
    plan = store.plan(entry.run.id)
    if plan is not None and plan.store and Path(plan.store).is_dir():
        return Path(plan.store)
    return paths.data_home() / "code" / f"{entry.run.project}.git"
