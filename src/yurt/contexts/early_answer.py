"""The queries that `yurt ps`, `show` and `logs` repeat: the answer of a site may be there before they are made.

No module above yurt.transport knows more of it than this one says: without an early answer everything works as with
one, and only takes longer. See docs/decisions/0007-early-query.md. Imports nothing that makes queries.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence

from yurt.clocks import clocks, within
from yurt.config import paths
from yurt.model.digest import checksum
from yurt.model.progress import report_slow
from yurt.model.run import RunRef
from yurt.model.status_answer import days_since
from yurt.transport import queue_prefetch

SCRIPTS = ("shell/tail_send.sh", "shell/tail.sh", "slurm/poll.sh", "job/gate.sh", "job/own.sh")
"""The scripts of these queries, below the package of the backends."""

WEEK = 604_800
"""Seconds after which the facts about a site are probed again."""


def is_sent() -> bool:
    """Whether a query was sent early by this process."""
    return queue_prefetch.is_sent()


def find(context: str, basis: bytes) -> bytes | None:
    """Return the output of the query with this basis; None: make the query, which may still use the early answer."""
    silent = within(clocks().silent)

    def on_slow(begun: bool) -> None:
        if silent <= clocks().slow:
            return
        slurm = "Slurm on " if begun else ""  # only Slurm makes a query take long
        report_slow(f"waiting for {slurm}{context} to respond; giving up after {silent:.0f} s")

    return queue_prefetch.early_output(basis, clocks().slow, silent, on_slow)


def expect(verb: str, basis: bytes) -> None:
    """Say that the next query of this process is one that the next command of this verb may repeat.

    Without a basis, it has to be the same query, byte for byte.
    """
    queue_prefetch.prepare(verb, basis)


def states_changed() -> None:
    """Note that runs were submitted or have finished: the next query about states will be another one."""
    queue_prefetch.forget()


def basis_of_status(context: str, refs: Sequence[RunRef], running: str = "") -> bytes:
    """Return what identifies a status query."""
    rows = [f"{ref.id} {ref.folder} {ref.open} {ref.offsets}" for ref in refs]
    return _basis(context, running, str(days_since(refs)), *rows)


def basis_of_logs(context: str, folder: str, lines: int | None, only: str | None) -> bytes:
    """Return what identifies a query of the logs of a run."""
    return _basis(context, folder, f"{lines} {only}")


def _basis(context: str, *parts: str) -> bytes:
    """Return what identifies a query: its own parts, and the files that it is made from."""
    home = paths.config_folder()
    package = f"{os.path.dirname(os.path.dirname(queue_prefetch.__file__))}/backends"
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
