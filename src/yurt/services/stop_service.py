"""serve stop: end services."""

from __future__ import annotations

from collections.abc import Sequence

from yurt.config import contexts
from yurt.contexts import folders
from yurt.lifecycle.cancel import Cancelled, cancel_runs
from yurt.model.result import Result
from yurt.services import find


def stop(words: Sequence[str], *, every: bool = False, context: str = "") -> Result[list[Cancelled]]:
    """End the services of these names, or with these ids of runs; without names, the only one, or all with `every`.

    The request is saved first: the next yurt command repeats it if a site does not respond.
    """
    store = folders.store()
    if context:
        contexts.site(context)
    if every:
        entries = [entry for entry in find.unfinished(store) if context in ("", entry.run.context)]
    else:
        entries = [find.named(store, word, context, prefer=bool(word)) for word in words or [""]]
    done, unreachable = cancel_runs(store, entries) if entries else ([], None)
    warnings = [unreachable.message] if unreachable is not None else []
    return Result(kind="runs-cancelled", data=done, warnings=warnings, exit_code=4 if unreachable is not None else 0)
