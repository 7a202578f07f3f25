"""serve: run a program that listens in a job, and reach it from this machine."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from yurt.config import contexts, paths, unused_keys
from yurt.config.lock import locked
from yurt.contexts import connect, folders
from yurt.contexts.project import Project
from yurt.lifecycle.outbox.enqueue import enqueue
from yurt.lifecycle.plan.plan import plan
from yurt.lifecycle.plan.request import Request
from yurt.lifecycle.refresh.refresh import refresh_contexts
from yurt.lifecycle.signals import signals_interrupt
from yurt.lifecycle.steps import STEPS
from yurt.lifecycle.syncing import sync_first
from yurt.model import layout
from yurt.model.progress import Watch, unwatched
from yurt.model.result import Interrupted, Result
from yurt.services import find, programs
from yurt.services import ports as forward
from yurt.services.open_service import Screen, leave, reach
from yurt.services.programs import Wanted
from yurt.services.views import Service
from yurt.store import Entry, Store


def serve(
    request: Request,
    wanted: Wanted,
    *,
    context: str = "",
    local: int = 0,
    browser: Callable[[str], bool] | None,
    screen: Screen,
    watch: Watch = unwatched,
) -> Result[Service]:
    """Start a service, or reach the unfinished one of this name, until it ends or the user leaves.

    RefusedError: the site rejects it, or it failed. Interrupted: Ctrl-C before it could be reached.
    """
    if wanted.program == programs.COMMAND:
        programs.check(wanted.words)
    if request.name:
        programs.check_name(request.name)
    port = forward.listen(local) if local else 0
    request = msgspec.structs.replace(
        request, words=(), name=request.name or programs.name(wanted), service=programs.configuration(wanted)
    )
    store = folders.store()
    submitted: list[str] = []
    with signals_interrupt():
        try:
            entry, warnings = _found(store, request, context, screen=screen, watch=watch, on_kept=submitted.append)
            (entry,), notes = sync_first(store, [entry], watch=watch)
        except KeyboardInterrupt:
            raise Interrupted(leave(store, submitted[0], screen) if submitted else "nothing was submitted") from None
        return reach(store, entry, port=port, browser=browser, screen=screen, warnings=[*warnings, *notes])


def _is_cancelled(entry: Entry) -> bool:
    """Return whether a service was cancelled and its job is terminating."""
    files = connect.named_backend(entry.run.context).files
    return bool(entry.run.folder) and files.read(entry.run.folder, layout.CANCEL) is not None


def _found(
    store: Store, request: Request, context: str, *, screen: Screen, watch: Watch, on_kept: Callable[[str], None]
) -> tuple[Entry, list[str]]:
    """Return the unfinished service of this name in this project and context, or submit one; and warnings.

    One process at a time, so that two commands do not submit two jobs.
    """
    place = contexts.site(contexts.current_name(context))
    label = Project(request.project).label
    with locked(paths.data_home() / "services" / f"{request.name}@{place.name}"):
        if find.same(store, request.name, place.name, label) is not None:
            refreshed = refresh_contexts(store, [place.name], steps=STEPS, watch=watch)
            if place.name in refreshed.failed:
                raise refreshed.failed[place.name]
            present = find.same(store, request.name, place.name, label)
            if present is not None and not _is_cancelled(present):
                on_kept(present.run.id)
                screen.word(f"service '{request.name}' is {present.status.state} already as run {present.run.id}")
                return present, refreshed.warnings
        planned = plan(place, request, index=store, offline=False, watch=watch)
        entry, notes = enqueue(store, place, planned, on_kept=on_kept, watch=watch)
        return entry, [*unused_keys.first_time(place.name), *notes]
