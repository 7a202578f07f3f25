"""`yurt context …`: manage contexts."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from yurt.cli import app, render
from yurt.cli.app import Group, context_names, verb

if TYPE_CHECKING:
    from yurt.contexts.context import Contexts, Resolved
    from yurt.model.context_effects import Effect


@click.group(
    cls=Group,
    lazy={
        "add": ("yurt.contexts.add:add_command", "Add a context for a Slurm cluster."),
        "edit": ("yurt.contexts.edit_command:edit", "Edit a context in your editor."),
        "profiles": ("yurt.contexts.list_profiles:profiles_command", "List site profiles, or show one."),
        "probe": ("yurt.contexts.probe:probe_command", "Query a site and cache its facts."),
    },
    examples=["yurt context list", "yurt context use big", "yurt context show --resolved"],
)
def context() -> None:
    """Manage contexts.

    A context is a named place to run: a Slurm cluster or this machine. Contexts are stored in contexts.yaml.
    """


_name = click.argument("name", metavar="[NAME]", required=False, default="", shell_complete=context_names)


@verb(context, name="list", examples=["yurt context list", "yurt context list --json"], context_help="")
def list_() -> None:
    """List all contexts; a star marks the current one."""
    from yurt.contexts import context as verbs

    found = verbs.list_(app.current().context)
    render.result(found, lambda: _print_list(found.data), requested=True)


def _print_list(found: Contexts) -> None:
    star, title = ("yes", "current") if app.plain() else ("*", "")
    rows = [
        [star if each.current else "", each.name, each.type, each.where or "", each.partition or "", each.account or ""]
        for each in found.contexts
    ]
    render.table([title, "name", "type", "where", "partition", "account"], rows)


@verb(context, examples=["yurt context show", "yurt context show big", "yurt context show big --resolved"])
@_name
@click.option("--resolved", is_flag=True, help="Show every setting that a new run would use, and where it comes from.")
def show(name: str, resolved: bool) -> None:
    """Show the settings of a context.

    Without NAME, shows the current context.
    """
    from yurt.contexts import context as verbs

    flag = app.current().context
    if resolved:
        settings = verbs.resolved(name, flag)
        render.result(settings, lambda: _print_resolved(settings.data), requested=True)
        return
    from yurt.config import yaml_text

    found = verbs.show(name, flag)
    text = {found.data.name: found.data.keys}

    def print_text() -> None:
        print(render.escaped(yaml_text.dump(text)), end="")
        for line in found.data.purges:
            print(f"# {render.plain(line)}")

    render.result(found, print_text, requested=True)


def _print_resolved(found: Resolved) -> None:
    render.table(["key", "value", "source"], [[each.key, _text(each.value), each.source] for each in found.settings])


def _text(value: Any) -> str:
    import msgspec

    if value is None or value in ("", (), [], {}):
        return "not set" if app.plain() else "-"
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


@verb(context, examples=["yurt context copy big big-gpu"], context_help="")
@click.argument("source", metavar="SOURCE", shell_complete=context_names)
@click.argument("target", metavar="TARGET")
def copy(source: str, target: str) -> None:
    """Copy context SOURCE to a new context TARGET."""
    from yurt.contexts import context as verbs

    render.result(verbs.copy(source, target), lambda: print(f"context '{source}' copied to '{target}'"))


@verb(context, examples=["yurt context use big"], context_help="", also=["set-active"])
@click.argument("name", metavar="NAME", shell_complete=context_names)
def use(name: str) -> None:
    """Make NAME the current context."""
    from yurt.contexts import context as verbs

    render.result(verbs.use(name), lambda: print(f"the current context is now '{name}'"))


@verb(
    context,
    examples=["yurt context remove big", "yurt context remove old older"],
    context_help="",
    also=["delete"],
)
@click.argument("names", metavar="NAME...", nargs=-1, required=True, shell_complete=context_names)
def remove(names: tuple[str, ...]) -> None:
    """Remove contexts from this machine.

    Does not change anything on their sites.
    """
    from yurt.contexts import context as verbs

    done = verbs.remove(names)

    def print_text() -> None:
        for name in done.data.names:
            print(f"context '{name}' removed")
        if done.data.current:
            print(f"the current context is now '{done.data.current}'")

    render.result(done, print_text)


@verb(
    context,
    name="import",
    examples=["yurt context import ~/.config/mrunner/config.yaml", "yurt context import contexts.yaml --replace"],
    context_help="",
)
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
@click.option("--replace", is_flag=True, help="Replace existing contexts with the same names.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
def import_(file: Path, replace: bool, yes: bool) -> None:
    """Import all contexts from a yurt or mrunner file.

    Invalid contexts are left out, with a warning for each. Nothing is imported if, without --replace, a context differs
    from an existing one with the same name. Settings that run programs or send files, such as ssh_command, ssh_options
    and after_module_load_cmd, are shown, and you are asked to confirm them.
    """
    from yurt.contexts import context as verbs

    found = verbs.import_(file, replace=replace, accept=lambda effects: yes or _confirmed(effects))

    def print_text() -> None:
        done = found.data
        for label, names in (("added", done.added), ("replaced", done.replaced), ("unchanged", done.unchanged)):
            if names:
                print(f"{label}: {', '.join(names)}")
        if done.current:
            print(f"the current context is now '{done.current}'")
        if not (done.added or done.replaced or done.unchanged):
            print(f"{file} contains no contexts")

    render.result(found, print_text)


def _confirmed(effects: Sequence[Effect]) -> bool:
    """Return whether the user confirms the effects; False without a terminal. Abort if the answer is no."""
    if app.current().json or not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    print("these settings run programs or send files:", file=sys.stderr)
    for each in effects:
        print(f"  {render.plain(each.line)}", file=sys.stderr)
    if not click.confirm("import them?", default=False):
        raise click.Abort
    return True
