"""mlflow: runs in MLflow, on a page of this machine that follows them, or sent to the user's server."""

from __future__ import annotations

import fcntl
import socket
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from yurt import private
from yurt.config import contexts, precedence
from yurt.contexts import folders
from yurt.errors import UserError, YurtError
from yurt.lifecycle.refresh.refresh import refresh_contexts
from yurt.lifecycle.refresh.track import LEASE
from yurt.lifecycle.select import name_warnings, which
from yurt.lifecycle.signals import signals_interrupt
from yurt.lifecycle.steps import STEPS
from yurt.model.addresses import without_password
from yurt.model.progress import Event, Watch, unwatched
from yurt.model.result import Result
from yurt.store import Entry, Store
from yurt.tracking.mlflow import journal, place
from yurt.tracking.mlflow.place import Place
from yurt.tracking.mlflow.update import update

INTERVAL, LONGEST = 15.0, 120.0
"""Seconds between two updates while runs go on: if something changes, and at most."""

SENTENCES = 5
"""How many errors of contexts are reported."""


class InMlflow(msgspec.Struct, frozen=True, kw_only=True):
    """Runs in an MLflow store."""

    store: str
    """The URI of the store, without a password."""
    runs: int
    """How many runs and sweeps were considered."""
    changed: int
    """How many MLflow runs were created or changed; each task of a sweep has one."""
    artifacts: int
    """How many files were added as artifacts."""
    url: str
    """The address of the page, with its token; empty without a page."""


def default_uri(context: str = "") -> str:
    """Return the setting `mlflow_uri` of a context. UserError if there is none."""
    name = contexts.current_name(context)
    found = precedence.resolve(contexts.site(name))["mlflow_uri"].value
    if not found:
        raise UserError(
            f"--to has no URI, and context '{name}' does not set `mlflow_uri`",
            code="usage",
            hint="for example: `--to https://mlflow.example`",
        )
    return str(found)


def send(names: Sequence[str], *, to: str = "", artifacts: bool = False, watch: Watch = unwatched) -> Result[InMlflow]:
    """Bring an MLflow store up to date: the one of this machine, or `to`.

    Contexts that cannot be queried are warnings. UnreachableError and RefusedError are of the store.
    """
    target = Place(place.checked_uri(to) if to else "")
    place.check_installed()
    store = folders.store()
    warnings = name_warnings(store, names) if names else []
    data, more = _update(store, target, names, artifacts=artifacts, watch=watch)
    return Result(kind="mlflow", data=data, warnings=[*warnings, *more])


def _update(
    store: Store, target: Place, names: Sequence[str], *, artifacts: bool = False, watch: Watch = unwatched
) -> tuple[InMlflow, list[str]]:
    entries = _chosen(store, names)
    warnings: list[str] = []
    sites = sorted({entry.run.context for entry in entries if not entry.status.final})
    if sites:
        watch(Event(f"querying {', '.join(sites)}"))
        warnings += refresh_contexts(store, sites, steps=STEPS, watch=watch).warnings
        entries = _chosen(store, names)
    updated = update(store, target, entries, watch=watch)
    warnings += [error.message for error in updated.failed[:SENTENCES]]
    added = 0
    if artifacts:
        from yurt.tracking.mlflow.artifacts import add

        added, problems = add(store, target, entries, watch=watch)
        warnings += problems
    data = InMlflow(
        store=without_password(target.uri), runs=len(entries), changed=updated.changed, artifacts=added, url=""
    )
    return data, list(dict.fromkeys(warnings))


def _chosen(store: Store, names: Sequence[str]) -> list[Entry]:
    """Return the named runs, or all, the oldest first."""
    if names:
        return which(store, names)
    return [entry for entry in store.newest() if entry.run.purpose == "run"][::-1]


def page(
    names: Sequence[str],
    *,
    artifacts: bool = False,
    on_ready: Callable[[Result[InMlflow], Path], None],
    on_word: Callable[[str], None],
    watch: Watch = unwatched,
) -> None:
    """Serve MLflow's page for the store of this machine and keep the store up to date, until Ctrl-C.

    `on_ready` gets the address of the page and a private folder for as long as it is open.
    """
    from yurt.pages.folder import page_folder
    from yurt.pages.front import Front
    from yurt.tracking.mlflow import server

    target = Place()
    place.check_installed()
    store = folders.store()
    warnings = name_warnings(store, names) if names else []
    _chosen(store, names)  # an error about a name comes at once
    if not place.database().exists():
        watch(Event("creating the MLflow store"))
        with journal.opened(target.uri):
            target.client  # noqa: B018
    with (
        suppress(KeyboardInterrupt),
        signals_interrupt(),
        page_folder() as files,
        server.serving(target, files.socket) as process,
    ):
        data, more = _update(store, target, names, artifacts=artifacts, watch=watch)
        watch(Event("starting the server of MLflow"))
        _wait_for(files.socket, process)
        with Front(files.socket, "MLflow", died=lambda: process.poll() is not None) as front:
            data = msgspec.structs.replace(data, url=front.url)
            on_ready(Result(kind="mlflow", data=data, warnings=[*warnings, *more]), files.folder)
            _follow(store, target, names, process, on_word)


def _wait_for(path: Path, process: subprocess.Popen[bytes]) -> None:
    """Wait until the server listens. RefusedError if it ends."""
    from yurt.tracking.mlflow import server

    while True:
        with suppress(OSError), socket.socket(socket.AF_UNIX) as one:
            one.connect(str(path))
            return
        if process.poll() is not None:
            raise server.ended(process)
        time.sleep(0.1)


def _follow(
    store: Store, target: Place, names: Sequence[str], process: subprocess.Popen[bytes], on_word: Callable[[str], None]
) -> None:
    """Update the store again and again. RefusedError if the server ends."""
    from yurt.tracking.mlflow import server

    pause, said = INTERVAL, list[str]()
    while True:
        with suppress(subprocess.TimeoutExpired):
            process.wait(pause)
            raise server.ended(process)
        try:
            data, words = _update(store, target, names)
            pause = INTERVAL if data.changed else min(pause * 2, LONGEST)
        except YurtError as error:
            words, pause = [error.message], min(pause * 2, LONGEST)
        for word in words:
            if word not in said:
                on_word(word)
        said = words


def send_due() -> Result[InMlflow]:
    """Send the finished runs with the setting `track`, each to its store. Failures are recorded and retried later."""
    store = folders.store()
    changed, seen = 0, set[str]()
    with open(journal.folder() / "track.lock", "ab", opener=private.opener) as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        # The command that started this process has postponed them by LEASE.
        while due := [each for each in store.to_track(time.time() + LEASE) if each.run not in seen]:
            groups: dict[tuple[str, str], list[Entry]] = {}
            places = {each.run: each.uri for each in due}
            for entry in store.several(list(places)):
                groups.setdefault((places[entry.run.id], entry.run.context), []).append(entry)
            store.track_later(places, time.time() + 2 * LEASE)
            for (uri, _context), entries in groups.items():
                changed += _send_group(store, uri, entries)
            seen |= places.keys()
    return Result(kind="mlflow", data=InMlflow(store="", runs=len(seen), changed=changed, artifacts=0, url=""))


def _send_group(store: Store, uri: str, entries: Sequence[Entry]) -> int:
    """Send runs of one context to one store; return how many MLflow runs changed."""
    changed, why = 0, ""
    try:
        updated = update(store, Place(uri), entries)
        changed, why = updated.changed, "; ".join(error.message for error in updated.failed)
    except YurtError as error:
        why = error.message
    for entry in entries:
        if why:
            store.note_track_failed(entry.run.id, time.time(), why)
        else:
            store.note_tracked(entry.run.id, time.time())
    return changed
