"""Shows a service on the terminal: what it waits for, its URL, what happens to it; and asks whether it stays."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

import click

from yurt.cli import call, render, values
from yurt.cli.ask import confirm
from yurt.cli.declare import option
from yurt.lifecycle.pending_text import Pending

if TYPE_CHECKING:
    from yurt.model.files import Stream
    from yurt.model.result import Result
    from yurt.services.views import Service
    from yurt.store import Entry

_Decorated = TypeVar("_Decorated", bound=Callable[..., Any])


class Screen:
    """The terminal, as `yurt.services.open_service.Screen`."""

    def __init__(self, *, on_exit: str, begin: Callable[[], None] = lambda: None) -> None:
        """`on_exit` is ask, keep or stop. `begin` is called before the first output."""
        now = call.current()
        self._quiet, self._silent = now.quiet or now.json, now.quiet
        self._pending, self._on_exit, self._begin = Pending(quiet=self._quiet), on_exit, begin

    def waits(self, entry: Entry, phase: str, warnings: Sequence[str]) -> None:
        self._begin()
        if phase == "ended" and not warnings:
            return
        text = f"service '{entry.run.name}' is starting on {_where(entry)}" if phase else ""
        self._pending.show(entry, warnings, text=text)

    def opened(self, entry: Entry, found: Result[Service]) -> None:
        self._begin()
        self.clear()
        render.result(found, lambda: self._print(entry, found.data), requested=True)
        sys.stdout.flush()

    def _print(self, entry: Entry, each: Service) -> None:
        self._say(f"service '{each.name}' runs on {_where(entry)} as run {each.run}")
        if each.private == "port":
            self._say(f"every user of {each.node} can reach its port, because you allowed it with --open-port")
        print(each.url, flush=True)
        self._say("press Ctrl-C to leave")

    def _say(self, text: str) -> None:
        if not self._quiet:
            print(f"yurt: {render.escaped(text)}", file=sys.stderr, flush=True)

    def word(self, text: str) -> None:
        self._begin()
        self.clear()
        if not self._silent:  # called from other threads, too, which have no click context
            with suppress(OSError):  # the terminal was closed
                print(f"yurt: {render.escaped(text)}", file=sys.stderr, flush=True)

    def log(self, which: Stream, part: bytes) -> None:
        del which
        self.clear()
        sys.stderr.write(render.escaped(part.decode(errors="replace").replace("\t", "    ")))
        sys.stderr.flush()

    def keeps(self, entry: Entry) -> bool:
        self._begin()
        self.clear()
        if self._on_exit != "ask" or not (sys.stdin.isatty() and sys.stderr.isatty()):
            return self._on_exit != "stop"
        name = entry.run.name
        try:
            print(file=sys.stderr)
            return confirm(f"keep service '{name}' on {_where(entry)}?", default=True)
        except (click.Abort, OSError):
            print(file=sys.stderr)
            return True

    def clear(self) -> None:
        self._pending.clear()


def _where(entry: Entry) -> str:
    if entry.run.context_type == "local":
        return "this machine"
    return f"{entry.status.node} of {entry.run.context}" if entry.status.node else entry.run.context


def visiting(function: _Decorated) -> _Decorated:
    """Add the options of opening a service."""
    function = option(
        "--on-exit",
        type=values.Choice(["ask", "keep", "stop"]),
        default="ask",
        help="What Ctrl-C does to the job (default: ask; without a terminal, keep it).",
    )(function)
    function = option("--no-browser", is_flag=True, help="Print the URL and do not open a browser.")(function)
    return option(
        "--local", metavar="PORT", type=values.Number(1), help="The port of this machine (default: any free one)."
    )(function)
