"""dev backup: back up the workspace of a running dev node now."""

from __future__ import annotations

from typing import Any

import msgspec

from yurt.dev.ask import ask, part
from yurt.errors import UnreachableError, YurtError
from yurt.model.progress import Event, Watch, unwatched
from yurt.model.site_words import LARGEST, plausible
from yurt.model.workspace import Version
from yurt.sites import folders
from yurt.store import Entry
from yurt.verbs import dev_connect, dev_find
from yurt.verbs.result import Result


class BackedUp(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a workspace's backups after a request for one."""

    name: str
    run: str
    context: str
    version: Version | None
    """The version that the workspace is saved as now."""
    changed: bool
    """Whether a new version was made; false if nothing had changed since the last one, and nothing was damaged."""
    damaged: list[int] | None = None
    """The versions that were found damaged, if all were read; null if they were not."""


def backup(name: str, *, context: str = "", check: bool = False, watch: Watch = unwatched) -> Result[BackedUp]:
    """Make a backup, verify it and return it. RefusedError: it failed, or the dev node is not running.

    `check`: first read all versions. What is damaged is then saved again from the workspace.
    """
    store = folders.store()
    entry = dev_find.running(store, name, context).entry
    request = {"do": "check"} if check else {"do": "backup", "reason": "asked"}
    answer = asked(name, entry, request, watch)
    done = BackedUp(
        name=name,
        run=entry.run.id,
        context=entry.run.context,
        version=version_in(entry, answer),
        changed=bool(answer.get("changed", True)),
        damaged=(part(entry, answer, "damaged", list[int]) or []) if check else None,
    )
    return Result(kind="dev-backup", data=done)


def asked(name: str, entry: Entry, request: dict[str, Any], watch: Watch) -> dict[str, Any]:
    """Return the answer of a dev node to a request. Errors as of `ask`; if its node may have failed, they say so."""
    try:
        return ask(entry, request, shown(watch, entry.run.context))
    except UnreachableError as error:
        if not is_of_node(error):
            raise
        raise dev_connect.lost(name) from None


def is_of_node(error: YurtError) -> bool:
    """Whether Slurm cannot reach the node of a job: no repetition helps soon."""
    return isinstance(error, UnreachableError) and ": srun: " in error.message


def version_in(entry: Entry, answer: dict[str, Any]) -> Version | None:
    """Return the version in an answer of the holder."""
    found = part(entry, answer, "version", Version)
    return None if found is None else plausible(found)


def shown(watch: Watch, context: str) -> Any:
    """Return a function that shows what the holder reports while it works."""

    def on_progress(progress: Any) -> None:
        if isinstance(progress, dict):
            done, total = (_size(progress.get(key)) for key in ("done", "total"))
            watch(Event(f"{context}: {progress.get('phase') or 'working'}", done, total, bytes=bool(total)))

    return on_progress


def _size(value: Any) -> int:
    """Return a number of bytes that a dev node reports; 0 if it is none."""
    return int(value) if isinstance(value, int | float) and 0 <= value < LARGEST else 0
