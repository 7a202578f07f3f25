"""dev status: the dev nodes, their time left and their backups."""

from __future__ import annotations

from yurt.config import contexts
from yurt.contexts import folders
from yurt.dev import desks, elsewhere, views
from yurt.dev import find as dev_find
from yurt.dev.views import DevNode
from yurt.lifecycle.refresh.refresh import Refreshed, refresh_contexts
from yurt.lifecycle.steps import STEPS
from yurt.model.progress import Event, Watch, unwatched
from yurt.model.result import Result


def status(name: str = "", *, context: str = "", watch: Watch = unwatched) -> Result[list[DevNode]]:
    """Return the unfinished dev nodes, or the one of this name; of one context, or of all.

    Those of other machines are looked for on the given or the current context, and where there is one of this machine;
    on all contexts if there would be none.
    A site that does not respond is a warning; its dev nodes are as they were seen last. NotFoundError: there is none
    of this name.
    """
    store = folders.store()
    known = [dev_find.present(store, name, context)] if name else desks.unfinished(store)
    names = {each.entry.run.context for each in known if context in ("", each.entry.run.context)}
    refreshed = Refreshed()
    if names:
        watch(Event(f"querying {', '.join(sorted(names))}"))
        refreshed = refresh_contexts(store, sorted(names), steps=STEPS)
    warnings = refreshed.warnings
    if not name:
        usual = {*names, context or contexts.current_name()}
        others = usual if context or desks.unfinished(store) else {*usual, *elsewhere.everywhere()}
        failed = elsewhere.import_all(store, sorted(others - set(refreshed.failed)))
        for each, error in sorted(failed.items()):
            why = elsewhere.why(each, error)
            warnings.append(f"cannot look for dev nodes of other machines on {each}: {why}")
        warnings += dev_find.lost_nodes(store, context)
    known = [dev_find.known(store, name)] if name else desks.unfinished(store)
    found, notes = views.several([each for each in known if context in ("", each.entry.run.context)])
    return Result(kind="dev-nodes", data=found, warnings=[*warnings, *notes], exit_code=4 if notes else 0)
