"""One call of yurt: its global options, and the warnings so far. Does not import click, which most verbs do."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import local
from typing import TypeVar

_Returned = TypeVar("_Returned")


class App:
    """The global options of one call, given before or after the verb, and the warnings so far."""

    def __init__(self) -> None:  # not a dataclass: that would add a tenth to start-up
        self.context = ""
        self.json = False
        self.quiet = False
        self.plain = False
        self.verbose = 0
        self.warnings: list[str] = []


class _Calls(local):
    """The call of each thread that click does not manage."""

    now: App | None = None


_calls = _Calls()


def current() -> App:
    """Return the App of the current call."""
    if _calls.now is not None:
        return _calls.now
    import click

    return click.get_current_context().find_root().ensure_object(App)


def active() -> bool:
    """Return whether a call is in progress in this thread; not in a program that uses yurt's Python interface."""
    if _calls.now is not None:
        return True
    click = sys.modules.get("click")
    return click is not None and click.get_current_context(silent=True) is not None


def plain() -> bool:
    """Return whether output must consist of words: --plain or YURT_PLAIN."""
    return active() and current().plain


@contextmanager
def without_click(now: App) -> Iterator[None]:
    """Make an App the current one."""
    _calls.now = now
    try:
        yield
    finally:
        _calls.now = None


def invoke(now: App, function: Callable[[], _Returned], *, selects_runs: bool) -> _Returned:
    """Call the function of a verb; a site that responds slowly is named on stderr. With `selects_runs`, --context must
    not be misspelled."""
    from yurt.model.progress import on_slow

    if selects_runs and now.context:
        from yurt.contexts.known_context import check_context

        check_context(now.context)
    on_slow(lambda text: _say(now, text))
    try:
        return function()
    finally:
        on_slow(None)


def _say(now: App, text: str) -> None:
    """Print a line about a site that responds slowly."""
    if not (now.json or now.quiet):
        print(f"yurt: {text}", file=sys.stderr, flush=True)


def enable_gc() -> None:
    """Turn garbage collection on again, for verbs that run long; `yurt.__main__` turns it off."""
    import gc

    gc.enable()
