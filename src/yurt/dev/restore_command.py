"""`yurt dev restore [NAME] [PATH…]`: bring a version of a workspace back."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from yurt.cli import app, render
from yurt.cli.app import verb
from yurt.errors import UserError

if TYPE_CHECKING:
    from yurt.dev.restore import Restored

EXAMPLES = [
    "yurt dev restore --at '2h ago' src/train.py",
    "yurt dev restore --at v12",
    "yurt dev restore --name paper --at 2026-11-16 --to ~/paper-monday",
]


@verb(
    examples=EXAMPLES,
    context_help="The context with the backups; by default that of the last dev node of this name.",
)
@click.argument("paths", nargs=-1, metavar="[PATH]...")
@click.option("--name", metavar="NAME", default="default", help="The dev node (default: default).")
@click.option("--at", metavar="WHEN", default=None, help="A version (v12), or a time: 14:30, 2026-11-16, '2h ago'.")
@click.option("--to", "folder", metavar="FOLDER", default="", help="Restore into a new folder of this machine.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
def restore(paths: tuple[str, ...], name: str, at: str | None, folder: str, yes: bool) -> int:
    """Bring a version of a workspace back, the newest by default.

    PATH is a file or a folder in the workspace. With PATH, restores it into a new folder beside the workspace of the
    running dev node. Without PATH, replaces the workspace: it is backed up first, and moved aside. With --to, restores
    into a new folder of this machine; no dev node needs to run.
    """
    from yurt.cli.progress import watching_late
    from yurt.dev import restore as verbs

    now = app.current()
    if at is not None and not at.strip():
        from yurt.dev.moments import EXAMPLES as MOMENTS

        raise UserError("--at is empty", code="usage", hint=MOMENTS)
    at = at or ""
    if not paths and not folder and not yes:
        _there, version = verbs.find(name, at, context=now.context)
        _confirm(f"replace the workspace of dev node '{name}' by v{version.number} of {render.moment(version.time)}?")
        at = f"v{version.number}"
    with watching_late() as watch:
        if folder:
            found = verbs.to_folder(name, at, paths, folder, context=now.context, watch=watch)
        else:
            found = verbs.on_node(name, at, paths, context=now.context, watch=watch)
    return render.result(found, lambda: _print(found.data))


def _print(done: Restored) -> None:
    what = render.count(len(done.paths), "path") + f" of v{done.version}" if done.paths else f"v{done.version}"
    where = f" to {done.folder}" if done.folder else ""
    place = "" if done.here else f" on dev node '{done.name}'"
    print(render.plain(f"restored {what}{where}{place}"))
    if done.aside:
        print(render.plain(f"the workspace as it was before is in {done.aside}; terminals in it show a message"))


def _confirm(question: str) -> None:
    """Ask the user; UserError without a terminal. Aborts if the answer is no."""
    if app.current().json or not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UserError("nothing was restored: there is no terminal to ask on", code="usage", hint="add `--yes`")
    if not click.confirm(question, default=False, err=True):
        raise click.Abort
