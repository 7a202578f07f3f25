"""shell RUN: a terminal, or a command, inside a running run: on its node, in its folder, with its environment."""

from __future__ import annotations

import shlex
import subprocess
import sys
import time
from collections.abc import Sequence

from yurt.config import contexts
from yurt.errors import RefusedError, UserError
from yurt.hosts import Host, host_of
from yurt.model import layout
from yurt.runs.refresh.refresh import look
from yurt.store import Entry, Store

PATIENCE = 60.0

TERMINAL = 'exec "${SHELL:-/bin/sh}"'


def shell(store: Store, entry: Entry, words: Sequence[str] = (), *, terminal: bool) -> int:
    """Open a terminal inside a run, or run a command there; returns its exit code. RefusedError if it does not run."""
    run = entry.run
    if run.sets:
        raise UserError(f"sweep {run.id} is many runs", code="usage", hint=f"name a task: yurt shell {run.id}.0")
    if not entry.status.final:
        looked = look(store, [run.context])
        if run.context in looked.failed:
            raise looked.failed[run.context]
        entry = store.get(run.id) or entry
    if entry.status.state != "running":
        raise RefusedError(
            f"run {run.id} is not running: it is {entry.status.state}",
            code="run-not-running",
            hint=f"yurt show {run.id}",
        )
    instead = shlex.join(words) if words else TERMINAL
    folder, task = run.folder, ""
    if run.task is not None:
        folder, task = folder.rpartition(f"/{layout.TASKS}/")[0], f"YURT_TASK_INDEX={run.task} "
    inside = f"{task}YURT_INSTEAD={shlex.quote(instead)} exec sh {shlex.quote(f'{folder}/{layout.JOB}')} inside"
    host = host_of(contexts.named(run.context))
    if run.kind == "slurm":
        # srun knows a task of an array only by the number it has as a job of its own.
        own = f'"$(squeue -h -j {shlex.quote(entry.status.job)} -o %A)"'
        inside = f"srun --jobid={own} " + shlex.join([*_step(entry, terminal=terminal), "sh", "-c", inside])
    return _terminal(host, inside) if terminal else _command(host, inside)


def _step(entry: Entry, *, terminal: bool) -> list[str]:
    """One more step in the allocation that is there, beside those that run."""
    words = ["--quiet", "--overlap", "--nodes=1", "--ntasks=1", "--mem=0"]
    node = entry.status.node
    if node and not set(node) & set("[,"):
        words.append(f"--nodelist={node}")
    return [*words, "--pty"] if terminal else words


def _terminal(host: Host, command: str) -> int:
    with host.session(time.monotonic() + PATIENCE):
        return subprocess.call(host.terminal(command))


def _command(host: Host, command: str) -> int:
    """What it writes is passed on as it comes, without what a login shell says to everybody."""
    with host.stream(command) as stream:
        for chunk in stream:
            sys.stdout.buffer.write(chunk)
            sys.stdout.buffer.flush()
        sys.stderr.buffer.write(stream.err)
        return stream.code or 0
