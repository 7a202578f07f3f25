"""dev extend: let a dev node run longer, or queue a follow-up that takes over when it ends."""

from __future__ import annotations

import msgspec

from yurt.contexts import connect, folders
from yurt.dev import find as dev_find
from yurt.dev import views
from yurt.dev.ask import ask, part
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


def follow_up(name: str, *, context: str = "", watch: Watch = unwatched) -> Result[Extended]:
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
