"""Finds services in the index of runs."""

from __future__ import annotations

from collections.abc import Sequence

from yurt.config import contexts
from yurt.contexts.project import Project
from yurt.errors import NotFoundError, RefusedError, UserError
from yurt.lifecycle.select import which
from yurt.model.again import again
from yurt.store import Entry, Store

START = "start one with `yurt serve jupyter`"


def unfinished(store: Store) -> list[Entry]:
    """Return the services that have not finished, according to the index, newest first."""
    return [entry for entry in store.newest(unfinished=True) if entry.run.purpose == "service"]


def same(store: Store, name: str, context: str, project: str) -> Entry | None:
    """Return the unfinished service of a project with this name on a context."""
    wanted = (name, context, project)
    found = (entry for entry in unfinished(store) if (entry.run.name, entry.run.context, entry.run.project) == wanted)
    return next(found, None)


def named(store: Store, word: str, context: str = "", *, prefer: bool = True) -> Entry:
    """Return the unfinished service of this name, or with this id of a run; without a word, the only one.

    With `prefer`, services of this project come first. NotFoundError, UserError, RefusedError.
    """
    if context:
        contexts.site(context)
    everywhere = unfinished(store)
    alive = [entry for entry in everywhere if context in ("", entry.run.context)]
    elsewhere = [entry.run.context for entry in everywhere if word and entry.run.name == word]
    if elsewhere and context and context not in elsewhere:
        raise NotFoundError(
            f"service '{word}' is not on {context}, but on {', '.join(dict.fromkeys(elsewhere))}",
            code="not-found",
            hint="leave out `--context`",
        )
    found = [entry for entry in alive if entry.run.name == word] if word else alive
    if not found and word:
        found = [_by_run(store, word, alive)]
    if not found:
        where = f" on {context}" if context else ""
        raise NotFoundError(f"no service is running{where}", code="not-found", hint=START)
    label = Project().label
    here = [entry for entry in found if entry.run.project == label and prefer] or found
    if len(here) > 1:
        names = ", ".join(f"{entry.run.id} ({entry.run.name} on {entry.run.context})" for entry in here)
        raise UserError(
            f"there are {len(here)} such services: {names}",
            code="usage",
            hint=f"name a run, for example: `{here[0].run.id}`",
        )
    return here[0]


def _by_run(store: Store, word: str, alive: Sequence[Entry]) -> Entry:
    try:
        (entry,) = which(store, [word])
    except NotFoundError:
        known = ", ".join(dict.fromkeys(each.run.name for each in alive))
        raise NotFoundError(
            f"service '{word}' not found",
            code="not-found",
            hint=f"there are: {known}" if known else START,
        ) from None
    if entry.run.purpose != "service":
        raise RefusedError(
            f"run {entry.run.id} is not a service",
            code="impossible",
            hint=f"reach a port of it with `yurt forward {entry.run.id}:PORT`",
        )
    if entry.status.final:
        raise RefusedError(
            f"service '{entry.run.name}' has ended ({entry.status.state.replace('_', ' ')})",
            code="run-not-running",
            hint=f"start it again with `{again(entry.run)}`",
        )
    return entry
