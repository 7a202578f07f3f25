"""`yurt diff RUN RUN`: the differences between two runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from yurt.cli import app, render
from yurt.cli.app import run_names, verb

if TYPE_CHECKING:
    from yurt.lifecycle.diff import Difference, Patch
    from yurt.model.compare import ComparedValue
    from yurt.snapshot.differ import Change

WIDE = 36
"""Maximum width of a value in the table; longer values are printed on separate lines."""


@verb(examples=["yurt diff x7q4z -", "yurt diff x7q4z k2m9d --stat", "yurt diff x7q4z k2m9d --json"], context_help="")
@click.argument("left", metavar="RUN", shell_complete=run_names)
@click.argument("right", metavar="RUN", shell_complete=run_names)
@click.option("--stat", is_flag=True, help="Show only the changed files and line counts, not the patch.")
@click.option("--all", "everything", is_flag=True, help="Also show values that are equal.")
@click.option("--cached", is_flag=True, help="Compare cached data without querying the sites.")
def diff(left: str, right: str, stat: bool, everything: bool, cached: bool) -> None:
    """Show the differences between two runs.

    Compares command, parameters, code, environment, packages, resources and outcome. The runs can belong to different
    projects and contexts. The exit code is 0 whether or not they differ.
    """
    from yurt.cli.progress import watching
    from yurt.lifecycle import diff as verbs

    patch: Patch = "none" if stat else "text" if app.current().json else "colours" if render.colours() else "bytes"
    with watching() as watch:
        found = verbs.diff(left, right, everything=everything, patch=patch, cached=cached, watch=watch)

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
    if not app.plain():
        print(f"{'':{keys + 4}}{found.left:{width}}  {found.right}")
    for part in ("command", "parameters", "code", "environment", "packages", "resources", "outcome"):
        if part not in parts:
            continue
        print(part)
        for row in parts[part]:
            if app.plain():
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
        return "not set" if app.plain() else "-"
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
