"""tensorboard: show the curves of runs in one TensorBoard on this machine, while they run."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, NoReturn

import msgspec

from yurt.cli import call, render
from yurt.cli.browser import browser
from yurt.cli.completers import run_names
from yurt.cli.declare import argument, option, verb
from yurt.cli.filters import FILTER
from yurt.cli.values import Duration
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

if TYPE_CHECKING:
    from yurt.model.result import Result


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


EXAMPLES = [
    "yurt tensorboard",
    "yurt tensorboard @last-sweep baseline",
    "yurt tensorboard @last-sweep --filter lr=0.1",
    "yurt tensorboard - --logdir 'lightning_logs/*' --no-browser",
]

FEW = 4
"""Maximum number of runs that are printed."""


@verb(examples=EXAMPLES, context_help="")
@argument("runs", nargs=-1, metavar="[RUN...]", shell_complete=run_names)
@FILTER
@option("--logdir", metavar="GLOB", default="", help="Show only event files in folders that match GLOB.")
@option("--no-browser", is_flag=True, help="Print the URL and do not open a browser.")
@option(
    "--interval",
    metavar="TIME",
    type=Duration("15s", least=1, most=3600),
    default="15s",
    help="Seconds between two queries of a site (default: 15s).",
)
def tensorboard_command(
    runs: tuple[str, ...], filters: tuple[str, ...], logdir: str, no_browser: bool, interval: float
) -> int:
    """Show the curves of runs in TensorBoard.

    Downloads the event files of runs from all their contexts and opens one TensorBoard on this machine, which shows
    them side by side under yurt's names and parameters. Follows running runs, downloading only what is new, until you
    press Ctrl-C; the exit code is then 0. A query that finds nothing new doubles the interval, up to two minutes.

    Without RUN, it shows the unfinished runs of this project, or the newest one if all have finished. Event files are
    found wherever the script wrote them. A run without event files is shown with the metrics of yurt.log. GLOB is a
    path relative to the working directory or the outputs of the run, such as `runs/*`.

    The page is on 127.0.0.1, and only the printed URL opens it.
    """
    from contextlib import ExitStack

    from yurt.cli.progress import watching

    call.enable_gc()
    now = call.current()

    def on_open(found: Result[TensorboardPage]) -> None:
        progress.close()
        render.result(found, lambda: _print(found.data), requested=True)
        sys.stdout.flush()

    def on_word(text: str) -> None:
        if not now.quiet:
            print(f"yurt: {render.escaped(text)}", file=sys.stderr, flush=True)

    with ExitStack() as progress:
        done = tensorboard(
            runs,
            filters=filters,
            logdir=logdir,
            interval=interval,
            on_open=on_open,
            on_word=on_word,
            browser=browser(wanted=not no_browser),
            watch=progress.enter_context(watching()),
        )
    return done.exit_code


def _print(page: TensorboardPage) -> None:
    if not call.current().quiet:
        empty = [run for run in page.runs if run.final and not run.labels]
        if empty:
            print(f"yurt: no curves: {_few([run.id for run in empty])}", file=sys.stderr)
        rest = [run for run in page.runs if run not in empty]
        word = "showing" if all(run.final for run in rest) else "following"
        curves = "" if any(run.labels for run in rest) else "; no curves yet"
        names = _few([f"{run.id} ({run.context})" for run in rest])
        print(f"yurt: {f'{word} {names}{curves}; ' if rest else ''}press Ctrl-C to end", file=sys.stderr, flush=True)
    print(page.url)


def _few(names: list[str]) -> str:
    return ", ".join(names[:FEW]) + (f" and {len(names) - FEW} more" if len(names) > FEW else "")
