"""serve open: reach a service from this machine, until it ends or the user leaves."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from typing import Any, Protocol

from yurt.backends.kinds import kind_of
from yurt.cli import call, render
from yurt.cli.browser import browser
from yurt.cli.declare import argument, verb
from yurt.clocks import clocks
from yurt.contexts import connect, folders
from yurt.errors import RefusedError, YurtError
from yurt.lifecycle.cancel import cancel_runs
from yurt.lifecycle.files.logs import copy
from yurt.lifecycle.refresh.refresh import refresh_contexts
from yurt.lifecycle.signals import signals_interrupt
from yurt.lifecycle.starting import ended_before, until_running
from yurt.lifecycle.steps import STEPS
from yurt.model.files import Stream
from yurt.model.result import Interrupted, Result
from yurt.model.state import LISTED
from yurt.pages.browse import browse
from yurt.pages.folder import PageFolder, page_folder
from yurt.pages.front import Front
from yurt.services import find
from yurt.services import ports as forward
from yurt.services import status as statuses
from yurt.services.programs import TITLES
from yurt.services.screen import visiting
from yurt.services.status import ServiceStatus
from yurt.services.views import Service, service
from yurt.services.way import Way
from yurt.store import Entry, Store

OFTEN = 2.0
"""Seconds between two queries whether a service of this machine has ended."""

ENDING = 30.0
"""Seconds to wait for the end of a job whose program has ended."""

LOG_LINES = 15
"""Lines of the log that are shown if a service fails."""

BEFORE = "it listened"


class Screen(Protocol):
    """Shows a service to the user, and asks."""

    def waits(self, entry: Entry, phase: str, warnings: Sequence[str]) -> None:
        """It is not ready. Called every second or so; `phase` is starting or ended, and empty before its job runs."""

    def opened(self, entry: Entry, found: Result[Service]) -> None:
        """It can be reached at its URL."""

    def word(self, text: str) -> None:
        """A notice for the user."""

    def log(self, which: Stream, part: bytes) -> None:
        """A piece of the end of its log."""

    def keeps(self, entry: Entry) -> bool:
        """Ask whether the job stays after the user pressed Ctrl-C."""


def open_service(
    word: str, *, context: str = "", local: int = 0, browser: Callable[[str], bool] | None, screen: Screen
) -> Result[Service]:
    """Reach the unfinished service of this name, or with this id of a run; without a word, the only one."""
    port = forward.listen(local) if local else 0
    store = folders.store()
    entry = find.named(store, word, context)
    with signals_interrupt():
        return reach(store, entry, port=port, browser=browser, screen=screen, warnings=[])


def reach(
    store: Store,
    entry: Entry,
    *,
    port: int,
    browser: Callable[[str], bool] | None,
    screen: Screen,
    warnings: Sequence[str],
) -> Result[Service]:
    """Wait until a service is ready, and forward a page of this machine to it until it ends, or until Ctrl-C.

    RefusedError: it failed. Interrupted: Ctrl-C before it could be reached; else the result says how it ended.
    """
    visit = _Visit(store, entry, screen, list(warnings))
    try:
        visit.stay(port, browser)
    except KeyboardInterrupt:
        note = leave(store, entry.run.id, screen)
        if visit.page is None:
            raise Interrupted(note) from None
        screen.word(note)
    return Result(kind="service", data=visit.view())


def leave(store: Store, run: str, screen: Screen) -> str:
    """Ask whether a service stays; cancel it if not. Return what happens to it."""
    entry = store.get(run)
    if entry is None or entry.status.final:
        return "the service has ended" if entry is not None else "nothing was submitted"
    name = entry.run.name
    if screen.keeps(entry):
        back, end = f"`yurt serve open {name}`", f"`yurt serve stop {name}`"
        return f"service '{name}' stays; return to it with {back}, or end it with {end}"
    (done,), unreachable = cancel_runs(store, [entry])
    if unreachable is not None:
        return f"{done.note}; the next yurt command that reaches {done.context} will end service '{name}'"
    return f"service '{name}' is being stopped"


class _Visit:
    """The time in which a service is open here. It may be started again on another node, at the same URL."""

    def __init__(self, store: Store, entry: Entry, screen: Screen, warnings: list[str]) -> None:
        self._store, self._entry, self._screen, self._warnings = store, entry, screen, warnings
        self._status: ServiceStatus | None = None
        self._warned = False
        self.page: Front | None = None

    def view(self) -> Service:
        return service(self._entry, self._status, self.page.url if self.page is not None else "")

    def stay(self, port: int, browser: Callable[[str], bool] | None) -> None:
        """Return when the service has ended by itself. RefusedError: it failed."""
        with ExitStack() as stack:
            folder: PageFolder | None = None
            while True:
                try:
                    status = self._until_ready()
                except RefusedError:
                    self._entry = self._store.get(self._entry.run.id) or self._entry
                    if not self._entry.status.final:
                        raise
                    self._say_end()
                    return
                if folder is None:
                    folder = stack.enter_context(page_folder())
                if self.page is None:
                    self.page = stack.enter_context(Front(folder.socket, self._title(), port=port))
                way = Way(self._entry, status, folder.folder)
                self.page.headers = {"Authorization": f"token {way.token}"} if way.token else {}
                self._forward(folder, status, way, browser)
                if self._entry.status.final:
                    self._say_end()
                    return
                self.page.starts_again()
                if self._entry.status.state in LISTED:
                    self._screen.word(f"service '{self._entry.run.name}' is being started again")

    def _title(self) -> str:
        return TITLES.get(self._status.program if self._status else "", "The service")

    def _forward(
        self, folder: PageFolder, status: ServiceStatus, way: Way, browser: Callable[[str], bool] | None
    ) -> None:
        run = self._entry.run
        first = True

        def opened() -> None:
            nonlocal first
            if not first or self.page is None:
                return
            first = False
            self._screen.opened(self._entry, Result(kind="service", data=self.view(), warnings=self._warnings))
            if browser is not None and not browse(folder.folder, self.page.url, browser):
                self._screen.word("no browser could be opened; open the URL yourself")

        forward.forward(
            way.program,
            [(folder.socket, status.socket or status.port)],
            is_over=self._is_over,
            interval=OFTEN if kind_of(run.context_type).here else clocks().service,
            on_open=opened,
            on_word=self._screen.word,
            has_other=way.has_other,
        )

    def _is_over(self) -> bool:
        """Return whether the service has ended or is being started again. Says that its time limit is near."""
        run, before = self._entry.run, self._entry.status
        with self._store.twin() as store:
            refresh_contexts(store, [run.context])
            now = store.get(run.id)
        if now is None:
            return True
        self._entry = now
        if now.status.state != "running" or (now.status.job, now.status.restarts) != (before.job, before.restarts):
            return True
        if now.status.restarts and self._started_again():
            return True
        self._say_limit()
        return False

    def _started_again(self) -> bool:
        """Return whether service.json was of an earlier start when it was read."""
        try:
            status = self._read()
        except YurtError:
            return False
        return status is not None and self._status is not None and status.start != self._status.start

    def _say_limit(self) -> None:
        if self._warned or not self._ends_soon():
            return
        try:
            self._status = self._read() or self._status  # the limit may have been extended
        except YurtError:
            return
        if self._status is None or self._status.end is None or not self._ends_soon():
            return
        self._warned = True
        minutes = round((self._status.end - time.time()) / 60)
        left = "less than a minute" if minutes < 1 else "1 minute" if minutes == 1 else f"{minutes} minutes"
        self._screen.word(f"service '{self._entry.run.name}' ends in {left}, at its time limit")

    def _ends_soon(self) -> bool:
        end = self._status.end if self._status is not None else None
        return end is not None and end - time.time() <= clocks().notice + clocks().service

    def _until_ready(self) -> ServiceStatus:
        """Wait until the job runs and its program listens. RefusedError: it ended before."""

        def pending(entry: Entry, warnings: Sequence[str]) -> None:
            self._screen.waits(entry, "", warnings)

        self._entry = until_running(self._store, self._entry, pending, before=BEFORE)
        pause, checked = 0.2, time.monotonic()
        deadline: float | None = None
        while True:
            status = self._read()
            if status is not None and status.restarts >= self._entry.status.restarts:
                self._status = status
                if status.phase == "ready":
                    return status
                if status.phase in ("failed", "ended"):  # its job ends now
                    deadline = deadline or time.monotonic() + ENDING
                    if time.monotonic() > deadline:
                        raise self._failure()
            self._screen.waits(self._entry, "ended" if deadline else "starting", [])
            time.sleep(pause)
            pause = min(1.0, pause * 1.3)
            if time.monotonic() - checked > (0.2 if deadline else 2):
                self._check_running()
                checked = time.monotonic()

    def _check_running(self) -> None:
        run = self._entry.run
        refreshed = refresh_contexts(self._store, [run.context], steps=STEPS, keep=False)
        self._entry = self._store.get(run.id) or self._entry
        if self._entry.status.final:
            raise ended_before(self._entry, BEFORE)
        for text in refreshed.warnings:
            self._screen.waits(self._entry, "", [text])

    def _read(self) -> ServiceStatus | None:
        run = self._entry.run
        return statuses.read(connect.named_backend(run.context).files.read(run.folder, statuses.FILE))

    def _say_end(self) -> None:
        """Say how the service ended. RefusedError with the end of its log if that is a failure."""
        run, status = self._entry.run, self._entry.status
        if status.state == "cancelled" or (status.state == "completed" and self.page is not None):
            self._screen.word(f"service '{run.name}' has ended{' (cancelled)' if status.state == 'cancelled' else ''}")
            return
        if self.page is None:
            with suppress(YurtError):
                self._status = self._read() or self._status
        if not self._note():
            with suppress(YurtError):  # there is none, or its site is not reachable
                copy(self._store, run, self._screen.log, lines=LOG_LINES)
        raise self._failure()

    def _note(self) -> str:
        """Return why the program could not be started."""
        return self._status.note if self._status is not None else ""

    def _failure(self) -> RefusedError:
        run, status = self._entry.run, self._entry.status
        state = status.state.replace("_", " ")
        reason = self._note() or (
            status.reason if state == "failed" else f"{state}{status.reason and f', {status.reason}'}"
        )
        when = "ended" if self.page is not None else "failed to start" if self._note() else "ended before it listened"
        return RefusedError(
            f"service '{run.name}' {when}: {reason}",
            code="service-failed",
            hint=f"see the run with `yurt show {run.id}`" if self._note() else f"see its log with `yurt logs {run.id}`",
        )


@verb(
    examples=["yurt serve open", "yurt serve open jupyter", "yurt serve open x7q4z --local 8888"],
    name="open",
    context_help="Only services on this context.",
)
@argument("name", metavar="[NAME]", required=False, default="")
@visiting
def open_command(name: str, **options: Any) -> int:
    """Open a service that is running.

    Connects this machine to a service that was started here, or on another machine and imported with `yurt import`.
    Waits for it if it is queued. NAME is the name of a service or the id of its run; without it,
    the only service is
    opened, or the only one of this project. Ctrl-C asks whether the job stays.
    """
    from yurt.model.result import Interrupted
    from yurt.services.screen import Screen

    call.enable_gc()
    screen = Screen(on_exit=options["on_exit"])
    try:
        done = open_service(
            name,
            context=call.current().context,
            local=options["local"] or 0,
            browser=browser(wanted=not options["no_browser"]),
            screen=screen,
        )
    except Interrupted as error:
        screen.clear()
        print(f"yurt: interrupted; {render.escaped(error.note)}", file=sys.stderr, flush=True)
        return 130
    finally:
        screen.clear()
    return done.exit_code
