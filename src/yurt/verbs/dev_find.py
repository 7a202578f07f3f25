"""Finds what a command about a dev node needs: its run, and the folder with the backups of its workspace."""

from __future__ import annotations

import msgspec

from yurt.config import contexts, precedence
from yurt.dev import configure, desks
from yurt.dev.desks import Desk
from yurt.errors import RefusedError
from yurt.lifecycle.plan.holders import CONFIGURATION
from yurt.lifecycle.refresh.refresh import refresh_contexts
from yurt.model.context import Context
from yurt.model.workspace import Version, Workspace
from yurt.sites import connect, folders
from yurt.sites.facts import facts_if_probed
from yurt.store import Store
from yurt.verbs.dev_words import named
from yurt.verbs.steps import STEPS


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
    desk = desks.present(store, name)
    where = desk.entry.run.context
    check_context(name, where, context)
    refreshed = refresh_contexts(store, [where], steps=STEPS)
    if where in refreshed.failed:
        raise refreshed.failed[where]
    return desks.running(store, name)


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
        wanted = precedence.as_context(place.name, precedence.resolve(place, {}))
        folder = configure.backups_folder(wanted, facts_if_probed(place), name)
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
    store = folders.known_store()
    desk = None if store is None else desks.find(store, name)
    if desk is not None and (desk.entry.run.context, desk.entry.status.state) == (there.context.name, "running"):
        ways.append(f"the dev node has the newest files: `yurt dev backup{named(name)} --check` saves them again")
    elif there.found.newest == version and version.host:
        host = version.host.partition(".")[0]
        at = f" --context {there.context.name}"
        ways.append(f"{host} may still have its files: `yurt dev up{named(name)}{at} --node {host}`")
    whole = there.found.whole(without=damaged)
    if whole is not None:
        ways.append(f"v{whole.number} is the newest version that is not damaged; see `yurt dev backups{named(name)}`")
    return "; ".join(ways) or f"see `yurt dev backups{named(name)}`"


def is_known(name: str) -> bool:
    """Return whether this machine has started or followed a dev node of this name."""
    store = folders.known_store()
    found = [] if store is None else store.newest(where={"name": [name]})
    return any(entry.run.purpose == "dev" for entry in found)


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
