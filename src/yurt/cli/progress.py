"""Shows the progress of a long operation: a bar on a terminal, lines with -v or --plain, otherwise nothing."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from yurt.cli import call, render
from yurt.model.progress import Event, Rate, Watch, unwatched

EVERY = 2.0
"""Seconds between two lines about the same transfer."""


@contextmanager
def watching(*, asks: bool = False) -> Iterator[Watch]:
    """Yield a progress callback. With `asks` it prints lines: a bar would overwrite the prompts of the operation."""
    now = call.current()
    if asks and not (now.json or now.quiet):
        yield lambda event: print(render.plain(event.text), file=sys.stderr, flush=True)
        return
    if now.verbose and not now.json:
        yield _lines(_with_time(time.monotonic()))
    elif sys.stderr.isatty() and not (now.json or now.quiet):
        if not render.redraws():
            yield _lines(render.plain)
            return
        with _bar() as watch:
            yield watch
    else:
        yield unwatched


@contextmanager
def watching_late() -> Iterator[Watch]:
    """Yield a progress callback that loads the bar with the first event, so an operation without events stays fast."""
    with ExitStack() as stack:
        begun: list[Watch] = []

        def watch(event: Event) -> None:
            if not begun:
                begun.append(stack.enter_context(watching()))
            begun[0](event)

        yield watch


def _with_time(started: float) -> Callable[[str], str]:
    return lambda text: f"{time.monotonic() - started:7.2f} s  {render.plain(text)}"


def _lines(line: Callable[[str], str]) -> Watch:
    """Return a callback that prints an event as a line: each new text, and a transfer every few seconds."""
    rate = Rate()
    shown, at, complete = "", 0.0, False

    def watch(event: Event) -> None:
        nonlocal shown, at, complete
        now = time.monotonic()
        text = rate.line(event, now) if event.bytes else event.text
        ended = event.bytes and event.done == event.total
        if event.bytes and event.text == shown and now - at < EVERY and (complete or not ended):
            return
        shown, at, complete = event.text, now, ended
        print(line(text), file=sys.stderr, flush=True)

    return watch


@contextmanager
def _bar() -> Iterator[Watch]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (
        SpinnerColumn(),
        BarColumn(bar_width=24),
        TimeElapsedColumn(),
        TextColumn("{task.description}", markup=False),
    )
    rate = Rate()
    console = Console(stderr=True, color_system="auto" if render.colours_wanted() else None)
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("", total=None)

        def watch(event: Event) -> None:
            text = rate.line(event, time.monotonic()) if event.bytes else event.text
            progress.update(task, description=render.plain(text), completed=event.done, total=event.total or None)

        yield watch
