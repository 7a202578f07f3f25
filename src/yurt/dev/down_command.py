"""`yurt dev down [NAME]`: back up a workspace and release the node."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from yurt.cli import app, render
from yurt.cli.app import verb
from yurt.dev.names import dev_names

if TYPE_CHECKING:
    from yurt.dev.down import Down


@verb(examples=["yurt dev down", "yurt dev down paper", "yurt dev down --now --yes"], context_help="")
@click.argument("name", metavar="[NAME]", required=False, default="default", shell_complete=dev_names)
@click.option("--now", is_flag=True, help="Do not make a last backup: changes since the last one may be lost.")
@click.option("--drop-packages", "drop", is_flag=True, help="Remove the packages that you added on the dev node.")
@click.option("--yes", is_flag=True, help="With --now, do not ask for confirmation.")
def down(name: str, now: bool, drop: bool, yes: bool) -> int:
    """Back up the workspace, verify the backup, and release the node.

    If the backup fails, or the dev node does not answer, nothing is released. A dev node that is still queued is
    cancelled, and so is its follow-up. The next `yurt dev up` restores the workspace, with the packages that you added.
    """
    from yurt.cli.progress import watching_late
    from yurt.dev import down as verbs
    from yurt.errors import UserError
    from yurt.model.result import Interrupted

    if now and drop:
        raise UserError("--now and --drop-packages cannot be combined", code="usage", hint="leave out one of them")
    if now and not yes:
        risk = verbs.risk(name, app.current().context)
        _confirm(f"{risk}end dev node '{name}' without a last backup?")
    try:
        with watching_late() as watch:
            found = verbs.down(name, context=app.current().context, now=now, drop=drop, watch=watch)
    except Interrupted as error:
        print(f"yurt: interrupted; {render.escaped(error.note)}", file=sys.stderr, flush=True)
        return 130

    def print_text() -> None:
        done = found.data
        saved = f"; its workspace is v{done.version}" if done.version else ""
        print(f"dev node '{done.name}' ended: run {done.run} is {done.state}{saved}")
        if done.follow_up:
            print(f"its follow-up, run {done.follow_up}, is cancelled")
        _print_added(done)

    return render.result(found, print_text)


def _print_added(done: Down) -> None:
    from yurt.dev.added import requested
    from yurt.dev.words import named

    if not done.added:
        return
    mine = requested(done.added)
    names = ", ".join(
        f"{each.name} {each.version}" + (f" instead of {each.instead_of}" if each.instead_of else "") for each in mine
    )
    if rest := len(done.added) - len(mine):
        names += f", with {render.count(rest, 'package')} that they require"
    if done.dropped:
        print(render.plain(f"removed packages: {names}"))
        return
    print(render.plain(f"packages added on the dev node, which runs do not have: {names}"))
    if done.declare:
        print(render.plain(f"declare them in your project {done.declare}"))
    command = f"yurt dev down{named(done.name)} --drop-packages"
    print(f"they stay in the workspace; end a later dev node with `{command}` to remove them")


def _confirm(question: str) -> None:
    """Ask the user; UserError without a terminal. Aborts if the answer is no."""
    from yurt.errors import UserError

    if app.current().json or not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UserError("nothing was ended: there is no terminal to ask on", code="usage", hint="add `--yes`")
    if not click.confirm(question, default=False, err=True):
        raise click.Abort
