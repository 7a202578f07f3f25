"""Uses the answer to a query that was sent early, without importing what makes queries.

Only for the usual case: nothing is due, and the site answers as before. Otherwise the caller makes its query, which is
then answered by the same early answer.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence

import msgspec

from yurt import queue_prefetch
from yurt.clocks import clocks, within
from yurt.config import paths
from yurt.model.digest import checksum
from yurt.model.progress import report_slow
from yurt.model.run import RunRef
from yurt.model.status_answer import RunFiles, days_since, has_folders, split_files
from yurt.store import Store

SCRIPTS = ("shell/tail_send.sh", "shell/tail.sh", "slurm/poll.sh", "job/gate.sh", "job/own.sh")
"""The scripts of the queries that are sent early, below the package of the backends."""

WEEK = 604_800
"""Seconds after which the facts about a site are probed again."""


class Unchanged(msgspec.Struct, frozen=True):
    """A refresh that changed nothing."""

    notes: list[str]
    """Warnings about runs that are not tracked."""
    files: RunFiles | None = None
    """What the query has read in the folder of a running run."""


def unchanged(store: Store, context: str, running: str = "") -> Unchanged | None:
    """Record a refresh if the early answer shows that nothing has changed on a context. None: make the query.

    `running`: the folder of a run whose last metrics and usage the query reads, too.
    """
    if not queue_prefetch.is_sent() or _is_due(store, context):
        return None
    refs, now = store.refs(context), time.time()
    if not refs or not all(ref.mark for ref in refs):
        return None
    found = _output(context, queue_basis(context, refs, running))
    if found is None:
        return None
    files, queue = split_files(found, asked=bool(running))
    mark = checksum(queue)
    if mark != store.answer(context) or has_folders(queue):
        return None
    from yurt.lifecycle.refresh import notify, track  # logs do without

    store.note_refresh(context, now, mark)
    notify.fire(store)
    return Unchanged(track.begin(store), files)


def _is_due(store: Store, context: str) -> bool:
    """Whether a refresh of a context would do more than query it."""
    return bool(
        store.open_races()
        or store.outbox(context)
        or store.cancels(context)
        or store.building(context)
        or store.to_mirror(context, time.time())
        or store.sent_elsewhere(context)
        or os.path.isdir(f"{os.path.dirname(store.file)}/calls")
    )


def logs(context: str, folder: str, lines: int | None) -> bytes | None:
    """Return the output of a query of the logs of a run; None: make the query."""
    return _output(context, logs_basis(context, folder, lines)) if queue_prefetch.is_sent() else None


def queue_basis(context: str, refs: Sequence[RunRef], running: str = "") -> bytes:
    """Return the basis of a status query."""
    rows = [f"{ref.id} {ref.folder} {ref.open} {ref.offsets}" for ref in refs]
    return _basis(context, running, str(days_since(refs)), *rows)


def logs_basis(context: str, folder: str, lines: int | None) -> bytes:
    """Return the basis of a query of the logs of a run."""
    return _basis(context, folder, str(lines))


def _basis(context: str, *parts: str) -> bytes:
    """Return what identifies a query: its own parts, and the files that it is made from."""
    home = paths.config_folder()
    package = f"{os.path.dirname(queue_prefetch.__file__)}/backends"
    files = [f"{home}/contexts.yaml", f"{home}/facts/{context}.json", *(f"{package}/{name}" for name in SCRIPTS)]
    text = "\0".join([context, *map(_file, files), *parts])
    return checksum(text.encode(errors="surrogateescape"))


def _file(path: str) -> str:
    """Return what identifies the content of a file, and whether it is older than a week."""
    try:
        found = os.stat(path)
    except OSError:
        return path
    week = int((time.time() - found.st_mtime) // WEEK) if path.endswith(".json") else 0
    return f"{path} {found.st_ino} {found.st_size} {found.st_mtime_ns} {week}"


def _output(context: str, basis: bytes) -> bytes | None:
    silent = within(clocks().silent)

    def on_slow(begun: bool) -> None:
        if silent <= clocks().slow:
            return
        slurm = "Slurm on " if begun else ""  # only Slurm makes a query take long
        report_slow(f"waiting for {slurm}{context} to respond; giving up after {silent:.0f} s")

    return queue_prefetch.early_output(basis, clocks().slow, silent, on_slow)
