"""dev status: the dev nodes, their time left and their backups."""

from __future__ import annotations

from yurt.dev import desks, views
from yurt.dev.views import DevNode
from yurt.lifecycle.refresh.refresh import refresh_contexts
from yurt.model.progress import Event, Watch, unwatched
from yurt.sites import folders
from yurt.verbs.result import Result
from yurt.verbs.steps import STEPS


def status(name: str = "", *, context: str = "", watch: Watch = unwatched) -> Result[list[DevNode]]:
    """Return the unfinished dev nodes, or the one of this name; of one context, or of all.

    A site that does not respond is a warning; its dev nodes are as they were seen last. NotFoundError: there is none
    of this name.
    """
    store = folders.store()
    known = [desks.present(store, name)] if name else desks.unfinished(store)
    names = sorted({each.entry.run.context for each in known if context in ("", each.entry.run.context)})
    warnings: list[str] = []
    if names:
        watch(Event(f"querying {', '.join(names)}"))
        warnings = refresh_contexts(store, names, steps=STEPS).warnings
        known = [desks.present(store, name)] if name else desks.unfinished(store)
    found, notes = views.several([each for each in known if context in ("", each.entry.run.context)])
    return Result(kind="dev-nodes", data=found, warnings=[*warnings, *notes], exit_code=4 if notes else 0)
