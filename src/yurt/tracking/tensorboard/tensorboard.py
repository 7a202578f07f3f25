"""tensorboard: show the curves of runs in one TensorBoard on this machine, while they run."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import NoReturn

import msgspec

from yurt.contexts import folders
from yurt.contexts.project import Project
from yurt.errors import NotFoundError
from yurt.lifecycle import select
from yurt.lifecycle.signals import signals_interrupt
from yurt.model.growth import Kind
from yurt.model.progress import Event, Watch, unwatched
from yurt.model.result import Result
from yurt.pages.browse import browse
from yurt.pages.folder import page_folder
from yurt.pages.front import Front
from yurt.store import Entry, Store
from yurt.tracking.follow import INTERVAL, Follower, bring
from yurt.tracking.tensorboard.process import Process, check_installed, running
from yurt.tracking.tensorboard.view import View

SOURCES: tuple[Kind, ...] = ("events", "metrics")

RELOADS = {"_tb_global_settings": '{"autoReload":true}'}
"""In the browser: the page loads new data every 30 seconds. By default it does not."""

TICK, LOOK = 0.5, 5.0
"""Maximum seconds until the end of TensorBoard is noticed, and until what another command downloaded is shown."""


class TensorboardRun(msgspec.Struct, frozen=True):
    """A run, a sweep or a task that TensorBoard shows."""

    id: str
    context: str
    labels: list[str]
    """Its names in TensorBoard so far; of a sweep, those of its tasks."""
    final: bool = False
    """Whether it has finished."""


class TensorboardPage(msgspec.Struct, frozen=True):
    """An open TensorBoard."""

    url: str
    """The address, with the token that opens it."""
    runs: list[TensorboardRun]
    """What it follows."""


def tensorboard(
    names: Sequence[str],
    *,
    filters: Sequence[str] = (),
    logdir: str = "",
    interval: float = INTERVAL,
    on_open: Callable[[Result[TensorboardPage]], None],
    on_word: Callable[[str], None] = lambda _text: None,
    browser: Callable[[str], bool] | None = None,
    watch: Watch = unwatched,
) -> Result[TensorboardPage]:
    """Serve a TensorBoard over runs, call `on_open` once it is up, and follow the runs until a signal ends it.

    SIGINT, SIGTERM and SIGHUP are its normal end. `browser` opens a URL. RefusedError if TensorBoard ends by itself.
    """
    check_installed()
    changed = threading.Event()
    with folders.store() as store, signals_interrupt(), contextlib.ExitStack() as stack:
        entries, warnings = _entries(store, names, filters, watch=watch)
        page = stack.enter_context(page_folder())
        view = View(page.folder / "runs", store, entries, logdir=logdir)
        server = stack.enter_context(running(page, view.folder, max(1.0, min(5.0, interval / 3))))
        failed = bring(store, entries, SOURCES, watch=watch)
        warnings += [f"{error.message}; yurt keeps trying" for error in failed]
        watch(Event("preparing curves"))
        view.update()
        watch(Event("starting TensorBoard"))
        server.until_listening()
        front = stack.enter_context(Front(page.socket, "TensorBoard", died=server.ended, settings=RELOADS))
        opened = Result(kind="tensorboard", data=_page(front.url, entries, view), warnings=warnings)
        with contextlib.suppress(KeyboardInterrupt):
            on_open(opened)
            if browser is not None and not browse(page.folder, front.url, browser):
                on_word("no browser could be opened; open the URL yourself")
            follower = Follower(
                store,
                entries,
                SOURCES,
                interval=interval,
                on_change=lambda _runs: changed.set(),
                on_word=on_word,
            )
            stack.callback(follower.stop)
            follower.start()
            _serve(server, view, changed)
    return opened


def _serve(server: Process, view: View, changed: threading.Event) -> NoReturn:
    """Keep the view up to date. RefusedError if TensorBoard ends."""
    due = time.monotonic() + LOOK
    while True:
        if changed.wait(TICK) or time.monotonic() > due:
            changed.clear()
            view.update()
            due = time.monotonic() + LOOK
        server.check()


def _entries(
    store: Store, names: Sequence[str], filters: Sequence[str], *, watch: Watch
) -> tuple[list[Entry], list[str]]:
    """Return the named runs; without names, the unfinished ones of this project, else its newest one."""
    words = list(names) or [entry.run.id for entry in _unfinished(store, sweeps=bool(filters))]
    if words:
        return select.meant(store, words, filters, watch=watch)
    if not filters:
        return select.meant(store, [select.LAST_HERE], (), watch=watch)
    newest = next((entry for entry in _of_project(store) if entry.run.tasks), None)
    if newest is None:
        raise NotFoundError(
            "this project has no sweeps yet, and --filter selects tasks of sweeps",
            code="not-found",
            hint="submit one with `yurt run --grid lr=0.1,0.01 train.py`",
        )
    return select.meant(store, [newest.run.id], filters, watch=watch)


def _unfinished(store: Store, *, sweeps: bool) -> list[Entry]:
    return [
        entry
        for entry in _of_project(store, unfinished=True)
        if entry.run.purpose == "run" and (entry.run.tasks or not sweeps)
    ]


def _of_project(store: Store, *, unfinished: bool = False) -> Iterator[Entry]:
    return store.newest(where={"project": [Project().label]}, unfinished=unfinished)


def _page(url: str, entries: Sequence[Entry], view: View) -> TensorboardPage:
    shown = view.shown()
    runs = []
    for entry in entries:
        run = entry.run
        own = [name for key, found in shown.items() if key == run.id or key.startswith(f"{run.id}.") for name in found]
        runs.append(TensorboardRun(run.id, run.context, own, entry.status.final))
    return TensorboardPage(url, runs)
