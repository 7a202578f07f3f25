"""Finds the dev nodes in the index of runs: which run is the present dev node of a name."""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from yurt.errors import NotFoundError, RefusedError, UserError, one_of
from yurt.store import Entry, Store

DEFAULT = "default"
"""The name of a dev node if the user gives none."""

UNUSABLE = 78
"""The exit code of a dev node that cannot start on its node."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,39}")


class Desk(msgspec.Struct, frozen=True):
    """The runs of a dev node that have not finished."""

    name: str
    entry: Entry
    """The present one: the newest that is running, else the newest."""
    follow_up: Entry | None = None
    """The newest one that is queued and takes over later."""


def check_name(name: str) -> str:
    """Return the name of a dev node. UserError if it cannot be part of a path and of the name of an ssh host."""
    if _NAME.fullmatch(name) is None:
        raise UserError(
            f"'{name}' is not a valid name of a dev node: it may have up to 40 letters, digits, dots, _ and -,"
            " and starts with a letter or a digit",
            code="usage",
            hint="for example: `yurt dev up paper`",
        )
    return name


def ssh_name(name: str) -> str:
    """Return the name under which ssh reaches a dev node."""
    return "yurt-dev" if name == DEFAULT else f"yurt-dev-{name}"


def unfinished(store: Store) -> list[Desk]:
    """Return the dev nodes that have not finished, according to the index, newest first."""
    found: dict[str, list[Entry]] = {}
    for entry in store.newest(unfinished=True):
        if entry.run.purpose == "dev":
            found.setdefault(entry.run.name, []).append(entry)
    return [_desk(name, entries) for name, entries in found.items()]


def _desk(name: str, entries: Sequence[Entry]) -> Desk:
    """Return a dev node from its unfinished runs, newest first."""
    present = next((each for each in entries if each.status.state == "running"), entries[0])
    later = [each for each in entries if each is not present and each.run.created > present.run.created]
    return Desk(name, present, later[0] if later else None)


def find(store: Store, name: str) -> Desk | None:
    """Return the dev node of a name; None if it has no unfinished run in the index."""
    return next((desk for desk in unfinished(store) if desk.name == name), None)


def present(store: Store, name: str) -> Desk:
    """Return the dev node of a name. NotFoundError if it has no unfinished run in the index."""
    check_name(name)
    every = unfinished(store)
    desk = next((desk for desk in every if desk.name == name), None)
    if desk is not None:
        return desk
    own = "" if name == DEFAULT else f" {name}"
    raise NotFoundError(
        f"there is no dev node '{name}'",
        code="not-found",
        hint=f"use {one_of(each.name for each in every)}, or start it with `yurt dev up{own}`"
        if every
        else f"start it with `yurt dev up{own}`",
    )


def running(store: Store, name: str) -> Desk:
    """Return the dev node of a name. RefusedError if it is not running yet."""
    desk = present(store, name)
    if desk.entry.status.state != "running":
        own = "" if name == DEFAULT else f" {name}"
        raise RefusedError(
            f"dev node '{name}' is not running: run {desk.entry.run.id} is {desk.entry.status.state}",
            code="run-not-running",
            hint=f"wait for it with `yurt dev up{own}`",
        )
    return desk


def last(store: Store, name: str) -> Entry | None:
    """Return the newest run of a dev node of this name, also one that has finished; None if none is known."""
    return next((entry for entry in store.newest(where={"name": [name]}) if entry.run.purpose == "dev"), None)


def past(store: Store, name: str, context: str) -> tuple[Entry | None, list[Entry]]:
    """Return the last run of a dev node on a context that had its workspace, and later ones that could not start."""
    failed: list[Entry] = []
    for entry in store.newest(where={"name": [name], "context": [context]}):
        if entry.run.purpose != "dev" or not entry.status.node:
            continue
        if entry.status.exit_code != UNUSABLE:
            return entry, failed
        failed.append(entry)
    return None, failed
