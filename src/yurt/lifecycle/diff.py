"""diff: compare two runs of any projects and contexts."""

from __future__ import annotations

from typing import Literal

import msgspec

from yurt.contexts import folders
from yurt.contexts.project import code_folder
from yurt.errors import RefusedError
from yurt.lifecycle.files import metrics
from yurt.lifecycle.select import which
from yurt.model.compare import ComparedValue, Side, compare
from yurt.model.progress import Event, Watch, unwatched
from yurt.model.result import Result
from yurt.snapshot import differ
from yurt.snapshot.differ import Change
from yurt.store import Entry, Store

Patch = Literal["none", "text", "bytes", "colours"]
"""The form of the code patch: text in the data, or raw bytes next to it."""


class CodeDifference(msgspec.Struct, frozen=True, kw_only=True):
    """The changes from the code of the left run to that of the right run."""

    same: bool
    unknown: str = ""
    """Why the code cannot be compared; empty if it can."""
    changes: list[Change] = []
    patch: str = ""
    """The output of `git diff`, with bytes that are not UTF-8 as \\xNN. Empty with --stat."""


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """The differences between two runs."""

    left: str
    right: str
    same: bool
    rows: list[ComparedValue]
    """Rows that differ; with --all, all rows."""
    code: CodeDifference


class Compared(Result[Difference], frozen=True, kw_only=True):
    """The differences between two runs, and the code patch as raw bytes if the caller requested that."""

    patch: bytes = b""


def diff(
    left: str,
    right: str,
    *,
    everything: bool = False,
    patch: Patch = "text",
    cached: bool = False,
    watch: Watch = unwatched,
) -> Compared:
    """Compare two runs, after a refresh of those that have not finished, unless `cached`.

    A context that cannot be queried is a warning.
    """
    index = folders.store()
    entries = [*which(index, [left]), *which(index, [right])]
    warnings: list[str] = []
    if not cached:
        from yurt.lifecycle.retry_select import refresh_unfinished

        warnings = refresh_unfinished(index, entries, watch=watch)
        entries = [each for entry in entries for each in which(index, [entry.run.id])]
    found = _compared(
        index, entries[0], entries[1], everything=everything, text=patch == "text", ask=not cached, watch=watch
    )
    raw = b""
    if found.code.changes and patch in ("bytes", "colours"):
        raw = _pair(entries[0], entries[1]).patch(colour=patch == "colours")
    return Compared(kind="diff", data=found, warnings=warnings, patch=raw)


def _compared(
    store: Store, left: Entry, right: Entry, *, everything: bool, text: bool, ask: bool, watch: Watch
) -> Difference:
    """Compare two runs from the index; with `text`, include the code patch, else only the list of changed files.

    `ask`: read packages that this machine does not know from the sites.
    """
    from yurt.envs.of_runs.packages import packages_of

    sides = [
        Side(each.run, each.status, _metrics(store, each), packages_of(store, each.run, ask=ask))
        for each in (left, right)
    ]
    rows = compare(*sides)
    watch(Event("comparing the code"))
    code = _code(left, right, patch=text)
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


def _code(left: Entry, right: Entry, *, patch: bool) -> CodeDifference:
    trees = left.run.code.tree, right.run.code.tree
    if trees[0] == trees[1]:
        return CodeDifference(same=True)
    for entry in (left, right):
        run = entry.run
        if not run.code.tree:
            return CodeDifference(same=False, unknown=f"run {run.id} has no code snapshot")
        if not differ.is_here(code_folder(entry.run.project), run.code.tree):
            return CodeDifference(same=False, unknown=f"the code of run {run.id} is no longer on this machine")
    pair = _pair(left, right)
    try:
        changes = pair.changes()
        text = pair.patch().decode(errors="backslashreplace") if patch else ""
    except RefusedError as error:  # the git folder is damaged
        return CodeDifference(same=False, unknown=error.message)
    return CodeDifference(same=False, changes=changes, patch=text)


def _pair(left: Entry, right: Entry) -> differ.Pair:
    sides = [(code_folder(each.run.project), each.run.code.tree) for each in (left, right)]
    return differ.Pair(sides[0], sides[1])
