"""diff: compare two runs of any projects and contexts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import msgspec

from yurt.cli import call, render
from yurt.cli.completers import run_names
from yurt.cli.declare import argument, option, verb
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

if TYPE_CHECKING:
    from yurt.model.compare import ComparedValue
    from yurt.snapshot.differ import Change


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


WIDE = 36
"""Maximum width of a value in the table; longer values are printed on separate lines."""


@verb(examples=["yurt diff x7q4z -", "yurt diff x7q4z k2m9d --stat", "yurt diff x7q4z k2m9d --json"], context_help="")
@argument("left", metavar="RUN", shell_complete=run_names)
@argument("right", metavar="RUN", shell_complete=run_names)
@option("--stat", is_flag=True, help="Show only the changed files and line counts, not the patch.")
@option("--all", "everything", is_flag=True, help="Also show values that are equal.")
@option("--cached", is_flag=True, help="Compare cached data without querying the sites.")
def diff_command(left: str, right: str, stat: bool, everything: bool, cached: bool) -> None:
    """Show the differences between two runs.

    Compares command, parameters, code, environment, packages, resources and outcome. The runs can belong to different
    projects and contexts. The exit code is 0 whether or not they differ.
    """
    from yurt.cli.progress import watching

    patch: Patch = "none" if stat else "text" if call.current().json else "colours" if render.colours() else "bytes"
    with watching() as watch:
        found = diff(left, right, everything=everything, patch=patch, cached=cached, watch=watch)

    def print_text() -> None:
        _print(found.data)
        if found.patch:
            print()
            render.verbatim(found.patch)

    render.result(found, print_text, requested=True)


def _print(found: Difference) -> None:
    if found.same and not found.rows:
        print(f"{found.left} and {found.right}: no differences")
        return
    parts: dict[str, list[ComparedValue]] = {}
    for row in found.rows:
        parts.setdefault(row.part, []).append(row)
    if not found.code.same or "code" in parts:
        parts.setdefault("code", [])
    lines = [(_shown(row, row.left, row.left_source), _shown(row, row.right, row.right_source)) for row in found.rows]
    short = [len(left) for left, right in lines if len(left) <= WIDE and len(right) <= WIDE]
    keys = max((len(row.key) for row in found.rows), default=0)
    width = max([len(found.left), *short])
    if not call.plain():
        print(f"{'':{keys + 4}}{found.left:{width}}  {found.right}")
    for part in ("command", "parameters", "code", "environment", "packages", "resources", "outcome"):
        if part not in parts:
            continue
        print(part)
        for row in parts[part]:
            if call.plain():
                _say_row(row, found)
            else:
                _print_row(row, keys, width)
        if part == "code":
            _print_changes(found.code)


def _print_row(row: ComparedValue, keys: int, width: int) -> None:
    left, right = _shown(row, row.left, row.left_source), _shown(row, row.right, row.right_source)
    red, green, plain = ("\033[31m", "\033[32m", "\033[0m") if render.colours() and not row.same else ("", "", "")
    key = render.plain(row.key)
    if len(left) <= WIDE and len(right) <= WIDE:
        print(f"  {key:{keys}}  {red}{left:{width}}{plain}  {green}{right}{plain}".rstrip())
    elif row.same:
        print(f"  {key:{keys}}  {left}")
    else:
        print(f"  {key}\n    {red}- {left}{plain}\n    {green}+ {right}{plain}")


def _say_row(row: ComparedValue, found: Difference) -> None:
    left, right = _shown(row, row.left, row.left_source), _shown(row, row.right, row.right_source)
    both = f"{left} in both" if row.same else f"{left} in {found.left}; {right} in {found.right}"
    print(f"{render.plain(row.key)}: {both}")


def _shown(row: ComparedValue, value: Any, source: str) -> str:
    import msgspec

    if value is msgspec.UNSET:
        return "not set" if call.plain() else "-"
    if row.key == "command" and row.part == "command":
        text = render.command_line(value)
    elif row.key in ("tree", "commit") and row.part == "code":
        text = value[:12]
    else:
        text = render.value(value)
    return render.plain(text + (f" ({source})" if source else ""))


def _print_changes(code: Any) -> None:
    if code.unknown:
        print(f"  {render.escaped(code.unknown)}")
    for change in code.changes:
        print(f"  {_change(change)}")


def _change(change: Change) -> str:
    name = f"{change.before} => {change.path}" if change.before else change.path
    parts: list[str] = [change.kind] if change.kind != "changed" else []
    if change.lines_added is None or change.lines_removed is None:
        parts.append("binary")
    elif change.lines_added or change.lines_removed:
        parts.append(f"+{change.lines_added} -{change.lines_removed}")
    if change.mode:
        parts.append(f"mode {change.mode}")
    return f"{render.plain(name)}: {', '.join(parts) or 'changed'}"
