"""`yurt context …`: the places to run, on the command line."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from yurt.cli import app, render
from yurt.cli.app import Group, context_names, verb

if TYPE_CHECKING:
    from yurt.verbs.context import Contexts, Resolved


@click.group(
    cls=Group,
    lazy={
        "add": ("yurt.cli.context_add:add", "Connect to a cluster, look at it, and write a context for it."),
        "edit": ("yurt.cli.context_edit:edit", "Change a context in your editor."),
        "probe": ("yurt.cli.context_add:probe", "Ask a site what it is like, and keep the answer."),
    },
    examples=["yurt context list", "yurt context use big", "yurt context show --resolved"],
)
def context() -> None:
    """Places to run: a cluster, Kubernetes, this machine. They are kept in contexts.yaml."""


_name = click.argument("name", metavar="[NAME]", required=False, default="", shell_complete=context_names)


@verb(context, name="list", examples=["yurt context list", "yurt context list --json"])
def list_() -> None:
    """List all contexts; a star marks the current one."""
    from yurt.verbs import context as verbs

    found = verbs.list_(app.current().context)
    render.result(found, lambda: _print_list(found.data), asked=True)


def _print_list(found: Contexts) -> None:
    rows = [
        ["*" if each.current else "", each.name, each.type, each.where or "", each.partition or "", each.account or ""]
        for each in found.contexts
    ]
    _table(["", "name", "type", "where", "partition", "account"], rows)


@verb(context, examples=["yurt context show", "yurt context show big", "yurt context show big --resolved"])
@_name
@click.option("--resolved", is_flag=True, help="Show every setting a run would have now, and where it comes from.")
def show(name: str, resolved: bool) -> None:
    """Show the keys a context sets (the current one, if none is named)."""
    from yurt.verbs import context as verbs

    flag = app.current().context
    if resolved:
        settings = verbs.resolved(name, flag)
        render.result(settings, lambda: _print_resolved(settings.data), asked=True)
        return
    from yurt.config import yaml_text

    found = verbs.show(name, flag)
    text = {found.data.name: found.data.keys}
    render.result(found, lambda: print(yaml_text.dump(text), end=""), asked=True)


def _print_resolved(found: Resolved) -> None:
    _table(["key", "value", "source"], [[each.key, _said(each.value), each.source] for each in found.settings])


def _said(value: Any) -> str:
    import msgspec

    if value is None or value in ("", (), [], {}):
        return "-"
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _table(columns: list[str], rows: list[list[str]]) -> None:
    from rich.markup import escape

    render.table(columns, [[escape(cell) for cell in row] for row in rows])


@verb(context, examples=["yurt context copy big big-gpu"])
@click.argument("source", metavar="SOURCE", shell_complete=context_names)
@click.argument("target", metavar="TARGET")
def copy(source: str, target: str) -> None:
    """Make a new context TARGET with everything SOURCE says."""
    from yurt.verbs import context as verbs

    render.result(verbs.copy(source, target), lambda: print(f"{target} is a copy of {source}"))


@verb(context, examples=["yurt context use big"])
@click.argument("name", metavar="NAME", shell_complete=context_names)
def use(name: str) -> None:
    """Make NAME the current context."""
    from yurt.verbs import context as verbs

    render.result(verbs.use(name), lambda: print(f"{name} is the current context"))


@verb(context, examples=["yurt context remove big", "yurt context remove old older"])
@click.argument("names", metavar="NAME...", nargs=-1, required=True, shell_complete=context_names)
def remove(names: tuple[str, ...]) -> None:
    """Forget contexts. Nothing on their sites is touched."""
    from yurt.verbs import context as verbs

    done = verbs.remove(names)

    def for_people() -> None:
        print(f"{', '.join(done.data.names)} removed")
        if done.data.current:
            print(f"{done.data.current} is the current context now")

    render.result(done, for_people)


@verb(
    context,
    name="import",
    examples=["yurt context import ~/.config/mrunner/config.yaml", "yurt context import contexts.yaml --replace"],
)
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
@click.option("--replace", is_flag=True, help="Let contexts of the file replace others of the same name.")
def import_(file: Path, replace: bool) -> None:
    """Add all contexts of FILE, which mrunner or yurt wrote: all of them or none."""
    from yurt.verbs import context as verbs

    found = verbs.import_(file, replace=replace)

    def for_people() -> None:
        done = found.data
        for word, names in (("added", done.added), ("replaced", done.replaced), ("unchanged", done.unchanged)):
            if names:
                print(f"{word}: {', '.join(names)}")
        if done.current:
            print(f"{done.current} is the current context")
        if not (done.added or done.replaced or done.unchanged):
            print(f"there are no contexts in {file}")

    render.result(found, for_people)
