"""dev extend: let a dev node run longer, or queue a follow-up that takes over when it ends."""

from __future__ import annotations

import sys

import msgspec

from yurt.cli import call, render
from yurt.cli.ask import confirm
from yurt.cli.declare import argument, option, verb
from yurt.contexts import connect, folders
from yurt.dev import find as dev_find
from yurt.dev import views
from yurt.dev.ask import ask, part
from yurt.dev.names import dev_names
from yurt.dev.up import follow_up as submit_follow_up
from yurt.dev.words import named
from yurt.errors import RefusedError, UserError, YurtError
from yurt.model.progress import Event, Watch, unwatched
from yurt.model.resources import parse_time
from yurt.model.result import Result

USUAL = "2h"


class Extended(msgspec.Struct, frozen=True, kw_only=True):
    """A dev node that runs longer, or that has a follow-up."""

    name: str
    run: str
    context: str
    minutes: int = 0
    """By how much its time limit was raised; 0 if it was not."""
    ends: float | None = None
    """When the job reaches its time limit, as far as it is known."""
    follow_up: str = ""
    """The queued run that takes over when this one ends."""


class NotAllowedError(RefusedError):
    """The site does not let the user extend a job; a follow-up is possible."""


def extend(name: str, time: str = "", *, context: str = "", watch: Watch = unwatched) -> Result[Extended]:
    """Raise the time limit of a running dev node. NotAllowedError: the site refuses."""
    try:
        minutes = parse_time(time.removeprefix("+") or USUAL)
    except ValueError as error:
        raise UserError(f"TIME {error}, not '{time}'", code="usage", hint="for example: `2h`") from None
    store = folders.store()
    entry = dev_find.running(store, name, context).entry
    watch(Event(f"extending job {entry.status.job}"))
    try:
        connect.named_backend(entry.run.context).runs.extend(entry.status.job, minutes)
    except RefusedError as error:
        command = f"scontrol update jobid={entry.status.job} TimeLimit=+{minutes}"
        raise NotAllowedError(
            error.message,
            code="site-refused",
            hint=f"an operator of the site can type `{command}`; or queue a job that takes over when this one ends"
            f" with `yurt dev extend{named(name)} --follow-up`",
        ) from None
    ends, warnings = None, []
    try:
        ends = part(entry, ask(entry, {"do": "time"}), "end", float)
    except YurtError as error:
        warnings.append(f"{error.message}; the dev node reads its new time limit within a few minutes")
    done = Extended(name=name, run=entry.run.id, context=entry.run.context, minutes=minutes, ends=ends)
    return Result(kind="dev-extended", data=done, warnings=warnings)


def queue_follow_up(name: str, *, context: str = "", watch: Watch = unwatched) -> Result[Extended]:
    """Queue another run of the dev node, which starts when the present one has ended. Safe to repeat."""
    store = folders.store()
    desk = dev_find.running(store, name, context)
    warnings: list[str] = []
    later = desk.follow_up
    if later is None:
        later, warnings = submit_follow_up(store, desk.entry, watch)
    else:
        warnings = [f"dev node '{name}' has a follow-up already: run {later.run.id}"]
    status = views.read_status(desk)
    done = Extended(
        name=name,
        run=desk.entry.run.id,
        context=desk.entry.run.context,
        ends=None if status is None else status.end,
        follow_up=later.run.id,
    )
    return Result(kind="dev-extended", data=done, warnings=warnings)


@verb(examples=["yurt dev extend 2h", "yurt dev extend paper 4h", "yurt dev extend --follow-up"], context_help="")
@argument("words", nargs=-1, metavar="[NAME] [TIME]", shell_complete=dev_names)
@option("--follow-up", is_flag=True, help="Queue a job that takes over the workspace when this one ends.")
def extend_command(words: tuple[str, ...], follow_up: bool) -> int:
    """Let a dev node run longer, by 2 hours unless TIME is given.

    Most sites let only their operators raise the time limit of a job. If the site refuses, a follow-up is offered: a
    job with the same options that starts when the present one ends, restores the workspace, and has the same ssh name.
    """
    from yurt.cli.progress import watching_late

    name, time = _split(words)
    context = call.current().context
    with watching_late() as watch:
        if follow_up:
            found = queue_follow_up(name, context=context, watch=watch)
        else:
            try:
                found = extend(name, time, context=context, watch=watch)
            except NotAllowedError as error:
                if not _accepts(error.message):
                    raise
                found = queue_follow_up(name, context=context, watch=watch)

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
    if call.current().json or not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    print(f"yurt: {render.escaped(refusal)}", file=sys.stderr)
    return confirm("queue a job that takes over when this one ends?", default=True)
