"""agent once: submit saved runs and refresh unfinished runs, on every context."""

from __future__ import annotations

import msgspec

from yurt.lifecycle.refresh.archive import catch_up_elsewhere
from yurt.lifecycle.refresh.refresh import refresh_contexts
from yurt.model.progress import Watch, unwatched
from yurt.sites import folders
from yurt.verbs.result import Result
from yurt.verbs.steps import STEPS


class Round(msgspec.Struct, frozen=True):
    """The result of one round of the agent."""

    contexts: list[str]
    submitted: list[str]
    pending: list[str]
    failed: dict[str, str]
    """Contexts that could not be queried, with the error message."""


def once(*, watch: Watch = unwatched) -> Result[Round]:
    """Run one round over all contexts with unfinished runs. The exit code is 4 if a context could not be queried."""
    store = folders.store()
    contexts = store.contexts_of_unfinished()
    refreshed = refresh_contexts(store, contexts, watch=watch, steps=STEPS, uploads=None)
    catch_up_elsewhere(store, contexts)
    submitted = [run for each in refreshed.advanced.values() for run in each.submitted]
    pending = [run for context in contexts for run in store.outbox(context)]
    failed = {context: error.message for context, error in refreshed.failed.items()}
    done = Round(contexts, submitted, pending, failed)
    return Result(kind="agent-round", data=done, warnings=refreshed.warnings, exit_code=4 if failed else 0)
