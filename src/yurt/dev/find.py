"""Finds what a command about a dev node needs: its run, or how the last one ended, and its backups."""

from __future__ import annotations

import time

import msgspec

from yurt.config import contexts
from yurt.contexts import connect, folders
from yurt.dev import desks, elsewhere
from yurt.dev.desks import Desk
from yurt.dev.words import named
from yurt.errors import NotFoundError, RefusedError, YurtError
from yurt.lifecycle.plan.holders import CONFIGURATION
from yurt.lifecycle.refresh.refresh import refresh_contexts
from yurt.lifecycle.steps import STEPS
from yurt.model.context import Context
from yurt.model.state import NODE_FAILED
from yurt.model.workspace import Version, Workspace
from yurt.store import Entry, Store

REMEMBERED = 7 * 86_400.0
"""For so many seconds, `dev status` mentions a dev node whose node failed."""


class Backups(msgspec.Struct, frozen=True):
    """The backups of a workspace on a site."""

    context: Context
    folder: str
    found: Workspace
    name: str
    """The name of the dev node."""


class _Configured(msgspec.Struct, frozen=True):
    """The part of the configuration of a dev node that names its backups."""

    backups: str = ""


def running(store: Store, name: str, context: str = "") -> Desk:
    """Return a dev node that is running, according to its site. NotFoundError, RefusedError, UnreachableError."""
    where = present(store, name, context).entry.run.context
    check_context(name, where, context)
    refreshed = refresh_contexts(store, [where], steps=STEPS)
    if where in refreshed.failed:
        raise refreshed.failed[where]
    desk = known(store, name)
    if desk.entry.status.state == "unknown":  # its job has ended; how is not certain yet
        raise ended(desk.entry)
    return desks.running(store, name)


def present(store: Store, name: str, context: str = "") -> Desk:
    """Return a dev node that has not finished, also one of another machine on the given context.

    Without a context: on that of its last run, and on the current one; on all if this machine does not know the name.
    NotFoundError; UnreachableError if it may be on a context that cannot be queried.
    """
    desks.check_name(name)
    if desks.find(store, name) is None:
        last = desks.last(store, name)
        usual = elsewhere.everywhere() if last is None else [contexts.current_name(), last.run.context]
        asked = [context] if context else list(dict.fromkeys(usual))
        failed = elsewhere.import_one(store, name, asked)
        is_where_it_was = last is not None and last.run.context in asked and last.run.context not in failed
        if failed and not is_where_it_was and desks.find(store, name) is None:
            raise elsewhere.may_be_there(name, asked, failed)
    return known(store, name)


def known(store: Store, name: str) -> Desk:
    """Return a dev node that has not finished according to the index. NotFoundError: it says how the last one ended."""
    try:
        return desks.present(store, name)
    except NotFoundError:
        last = desks.last(store, name)
        if last is None or not last.status.final or last.status.state == "completed":
            raise
        raise ended(last) from None


def lost_nodes(store: Store, context: str = "") -> list[str]:
    """Return sentences about dev nodes whose last run ended because its node failed, in the last days."""
    failed = store.newest(where={"state": ["node_failed"], **({"context": [context]} if context else {})})
    recent = [each for each in failed if each.run.purpose == "dev" and time.time() - each.run.created < REMEMBERED]
    newest = [each for each in recent if (last := desks.last(store, each.run.name)) and last.run == each.run]
    return [f"{error.message}; {error.hint}" for error in map(ended, newest)]


def ended(last: Entry) -> NotFoundError:
    """Return the error about a dev node whose last run has ended, but not by `dev down`."""
    run, status = last.run, last.status
    node = status.node or "its node"
    reason = status.reason.removeprefix(status.state).removeprefix("; ")
    how = f"run {run.id} is {status.state}{f' ({reason})' if reason else ''}"
    how += f" since {clock(status.ended)}" if status.ended is not None else ""
    if status.state == "node_failed":
        how = f"{node} failed at {clock(status.ended)}"
    text = f"dev node '{run.name}' is not running: {how}"
    hint = brought_back(run.name, run.context) or f"start it again with `yurt dev up{named(run.name)}`"
    if status.state == "node_failed" or status.reason == NODE_FAILED:
        hint += f"; work since then is on {node} until it returns"
    return NotFoundError(text, code="not-found", hint=hint)


def brought_back(name: str, context: str) -> str:
    """Return a clause on what `dev up` brings back, or on what else does if that is damaged; empty if unknown."""
    try:
        there = backups(name, context)
    except YurtError:  # the shared disk cannot be read now
        return ""
    newest = there.found.newest
    if newest is None:
        return ""
    version = f"version {newest.number} of {clock(newest.time)}"
    if newest.damaged:
        return f"{version} is damaged: {recovery(there, newest)}"
    return f"`yurt dev up{named(name)}` brings {version} back"


def clock(at: float | None) -> str:
    """Return a time as users read it: without the date if it is today."""
    try:
        when, now = time.localtime(at), time.localtime()
    except (OverflowError, ValueError, OSError):  # a site can record any number
        return "?"
    return time.strftime("%H:%M" if when[:3] == now[:3] else "%Y-%m-%d %H:%M", when)


def check_context(name: str, where: str, context: str) -> None:
    """RefusedError if the user names another context than the one that a dev node is on."""
    if context and context != where:
        raise RefusedError(
            f"dev node '{name}' is on {where}, not on {context}",
            code="impossible",
            hint="leave out `--context`",
        )


def backups(name: str, context: str = "") -> Backups:
    """Return the backups of a dev node's workspace, also if it is not running.

    On the given context, else on that of its last run, else on the current one.
    """
    desks.check_name(name)
    store = folders.known_store()
    last = _last(store, name, context) if store is not None else None
    if last is not None:
        place, folder = contexts.site(last[0]), last[1]
    else:
        place = contexts.site(contexts.current_name(context))
        folder = elsewhere.backups_folder(place, name)
    (found,) = connect.backend(place).workspaces.look([folder])
    return Backups(place, folder, found, name)


def check_whole(there: Backups, version: Version) -> None:
    """RefusedError if a version is known to be damaged."""
    if version.damaged:
        name, what_to_do = there.name, recovery(there, version)
        raise RefusedError(
            f"v{version.number} of dev node '{name}' on {there.context.name} is damaged, and cannot be restored",
            code="site-refused",
            hint=what_to_do,
        )


def recovery(there: Backups, version: Version, *, damaged: str = "") -> str:
    """Return the hint for a damaged version: where its files may be, then what can be restored. `damaged`: its file."""
    name, ways = there.name, []
    newest = there.found.newest.number if there.found.newest is not None else 0
    store = folders.known_store()
    desk = None if store is None else desks.find(store, name)
    if desk is not None and (desk.entry.run.context, desk.entry.status.state) == (there.context.name, "running"):
        ways.append(f"the dev node has the newest files: `yurt dev backup{named(name)} --check` saves them again")
    else:
        up = f"yurt dev up{named(name)} --context {there.context.name} --node"
        for host, latest in copies(there, damaged=damaged).items():
            files = "its files" if latest == version.number else f"those of v{latest}"
            restore = "" if latest == newest else f" --restore v{latest}"
            ways.append(f"{host} may still have {files}: `{up} {host}{restore}`")
    whole = there.found.whole(without=damaged)
    if whole is not None:
        ways.append(f"v{whole.number} is the newest version that is not damaged; see `yurt dev backups{named(name)}`")
    return "; ".join(ways) or f"see `yurt dev backups{named(name)}`"


def copies(there: Backups, *, damaged: str = "") -> dict[str, int]:
    """Return the last two nodes that made a version later than the newest sound one, and which version.

    The files of these versions may still be on the disks of these nodes. `damaged`: a file found damaged just now.
    """
    whole, found = there.found.whole(without=damaged), dict[str, int]()
    for each in reversed(there.found.versions):
        if each.host and not each.fork and (whole is None or each.number > whole.number) and len(found) < 2:
            found.setdefault(each.host.partition(".")[0], each.number)
    return found


def is_known(name: str) -> bool:
    """Return whether this machine has started or followed a dev node of this name."""
    store = folders.known_store()
    return store is not None and desks.last(store, name) is not None


def _last(store: Store, name: str, context: str) -> tuple[str, str] | None:
    """Return the context and the backups folder of the newest run of a dev node; None if it is not known."""
    where = {"name": [name], **({"context": [context]} if context else {})}
    for entry in store.newest(where=where):
        plan = store.plan(entry.run.id) if entry.run.purpose == "dev" else None
        if plan is not None and CONFIGURATION in plan.variables:
            given = msgspec.json.decode(plan.variables[CONFIGURATION], type=_Configured)
            if given.backups:
                return entry.run.context, given.backups
    return None
