"""shell: open a terminal, or run a command, inside a run: on its node, in its folder, with its environment."""

from __future__ import annotations

from collections.abc import Sequence

from yurt.errors import RefusedError, UserError
from yurt.lifecycle.refresh.refresh import refresh_contexts
from yurt.lifecycle.select import which
from yurt.sites import connect, folders
from yurt.verbs.steps import STEPS


def shell(name: str, words: Sequence[str] = (), *, terminal: bool) -> int:
    """Open a terminal inside a run, or run a command in it, and return the exit code. RefusedError: it is not running.

    The command writes to the caller's terminal, so there is no Result to render.
    """
    store = folders.store()
    (entry,) = which(store, [name])
    run = entry.run
    if run.tasks:
        raise UserError(
            f"{run.id} is a sweep; `yurt shell` needs a single task",
            code="usage",
            hint=f"for example: `yurt shell {run.id}.0`",
        )
    if not entry.status.final:
        refreshed = refresh_contexts(store, [run.context], steps=STEPS)
        if run.context in refreshed.failed:
            raise refreshed.failed[run.context]
        entry = store.get(run.id) or entry
    if entry.status.state != "running":
        raise RefusedError(
            f"run {run.id} is not running: it is {entry.status.state}",
            code="run-not-running",
            hint=f"see the run with `yurt show {run.id}`",
        )
    (placement,) = entry.placements
    runner = connect.named_backend(run.context).exec
    return runner.run(placement, words, node=entry.status.node, terminal=terminal)
