"""dev backup: back up the workspace of a running dev node now."""

from __future__ import annotations

from typing import Any

import msgspec

from yurt.cli import call, render
from yurt.cli.declare import argument, option, verb
from yurt.contexts import folders
from yurt.dev import connect as dev_connect
from yurt.dev import find as dev_find
from yurt.dev.ask import ask, part
from yurt.dev.names import dev_names
from yurt.errors import UnreachableError, YurtError
from yurt.model.progress import Event, Watch, unwatched
from yurt.model.result import Result
from yurt.model.site_words import LARGEST, plausible
from yurt.model.workspace import Version
from yurt.store import Entry


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
        raise dev_connect.why_lost(name) from None


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


@verb(examples=["yurt dev backup", "yurt dev backup paper --json", "yurt dev backup --check"], context_help="")
@argument("name", metavar="[NAME]", required=False, default="default", shell_complete=dev_names)
@option("--check", is_flag=True, help="Read all versions first, and save again what is damaged.")
def backup_command(name: str, check: bool) -> int:
    """Back up the workspace of a dev node now.

    Waits until the backup is complete and was read back. Only what changed since the last one is written. Backups are
    also made by the dev node itself, every 30 minutes and before it ends. Each also reads a part of the old ones
    again, --check reads all. Files whose backup is damaged are saved again from the workspace, as a new version.
    """
    from yurt.cli.progress import watching_late

    with watching_late() as watch:
        found = backup(name, context=call.current().context, check=check, watch=watch)

    def print_text() -> None:
        done, version = found.data, found.data.version
        if done.damaged is not None:
            names = ", ".join(f"v{each}" for each in done.damaged)
            print(f"damaged: {names}" if names else "no version is damaged")
        if version is None:
            print("nothing to back up")
        elif not done.changed:
            print(f"nothing changed since v{version.number} of {render.moment(version.time)}")
        else:
            verified = "verified" if version.verified else "not verified"
            sizes = f"{render.amount(version.size)}, {render.amount(version.new_size)} new"
            print(f"v{version.number}: {sizes}, {version.seconds:.1f} s, {verified}")
        if version is not None and version.note:
            print(render.plain(f"note: {version.note}"))

    return render.result(found, print_text)
