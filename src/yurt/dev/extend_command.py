"""`yurt dev extend [NAME] [TIME]`: let a dev node run longer."""

from __future__ import annotations

import sys

import click

from yurt.cli import app, render
from yurt.cli.app import verb
from yurt.dev.names import dev_names
from yurt.errors import UserError


@verb(examples=["yurt dev extend 2h", "yurt dev extend paper 4h", "yurt dev extend --follow-up"], context_help="")
@click.argument("words", nargs=-1, metavar="[NAME] [TIME]", shell_complete=dev_names)
@click.option("--follow-up", is_flag=True, help="Queue a job that takes over the workspace when this one ends.")
def extend(words: tuple[str, ...], follow_up: bool) -> int:
    """Let a dev node run longer, by 2 hours unless TIME is given.

    Most sites let only their operators raise the time limit of a job. If the site refuses, a follow-up is offered: a
    job with the same options that starts when the present one ends, restores the workspace, and has the same ssh name.
    """
    from yurt.cli.progress import watching_late
    from yurt.dev import extend as verbs

    name, time = _split(words)
    context = app.current().context
    with watching_late() as watch:
        if follow_up:
            found = verbs.follow_up(name, context=context, watch=watch)
        else:
            try:
                found = verbs.extend(name, time, context=context, watch=watch)
            except verbs.NotAllowedError as error:
                if not _accepts(error.message):
                    raise
                found = verbs.follow_up(name, context=context, watch=watch)

    def print_text() -> None:
        done = found.data
        end = "" if done.ends is None else f"; the present job ends at {render.moment(done.ends)}"
        if done.follow_up:
            print(f"run {done.follow_up} takes over dev node '{done.name}' when run {done.run} ends{end}")
        else:
            print(f"dev node '{done.name}' runs {render.span(done.minutes * 60)} longer{end}")

    return render.result(found, print_text)


def _split(words: tuple[str, ...]) -> tuple[str, str]:
    """Return the name and the time: a single word that begins with a digit or + is a time."""
    if len(words) > 2:
        raise UserError(
            f"unexpected argument '{words[2]}'", code="usage", hint="for example: `yurt dev extend paper 2h`"
        )
    if len(words) == 2:
        return words[0], words[1]
    if words and (words[0][0].isdigit() or words[0].startswith("+")):
        return "default", words[0]
    return (words[0] if words else "default"), ""


def _accepts(refusal: str) -> bool:
    """Whether the user, on a terminal, wants a follow-up instead."""
    if app.current().json or not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    print(f"yurt: {render.escaped(refusal)}", file=sys.stderr)
    return click.confirm("queue a job that takes over when this one ends?", default=True, err=True)
