"""Shows where and why a run waits: one line that is updated on a terminal, else a line for each change."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from yurt.cli import render

if TYPE_CHECKING:
    from yurt.store import Entry


class Pending:
    """The status line of a run that is not running yet."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._live = render.redraws()
        self._shown = ""
        self._since = time.monotonic()

    def show(self, entry: Entry, warnings: Sequence[str], *, more: str = "", text: str = "") -> None:
        """Show the state of a run, with `more` about it, or this text; and warnings on lines of their own."""
        if self._quiet:
            return
        for line in warnings:
            self.clear()
            print(f"yurt: {render.escaped(line)}; still waiting", file=sys.stderr)
        text = render.escaped(text or _line(entry) + (f", {more}" if more else ""))
        if self._live:
            waited = render.span(time.monotonic() - self._since)
            room = os.get_terminal_size(sys.stderr.fileno()).columns - len(waited) - 4
            print(f"\r\x1b[K{render.short(text, room)} ({waited})", end="", file=sys.stderr, flush=True)
        elif text != self._shown:
            print(text, file=sys.stderr, flush=True)
        self._shown = text

    def opened(self, entry: Entry) -> None:
        """Say where the shell opens."""
        self.clear()
        if not self._quiet:
            job = f", job {entry.status.job}" if entry.run.context_type != "local" else ""
            print(
                render.escaped(f"{entry.run.id} runs on {entry.status.node} of {entry.run.context}{job}"),
                file=sys.stderr,
            )

    def stopping(self, run: str) -> None:
        """Say that the run is being cancelled, which takes a while if its site is slow."""
        self.clear()
        if self._live and not self._quiet:
            self._shown = f"cancelling run {run}"
            with suppress(OSError):  # the terminal was closed
                print(f"\r\x1b[K{self._shown}", end="", file=sys.stderr, flush=True)

    def clear(self) -> None:
        """Remove the line from the terminal."""
        if self._live and self._shown and not self._quiet:
            with suppress(OSError):  # the terminal was closed
                print("\r\x1b[K", end="", file=sys.stderr, flush=True)
            self._shown = ""


def _line(entry: Entry) -> str:
    run, status = entry.run, entry.status
    where = f"{run.context}/{run.resources.partition}" if run.resources.partition else run.context
    what = f"job {status.job}" if status.job and run.context_type != "local" else run.id
    state = "waits for its environment, which is being built" if status.building else f"is {status.state}"
    return render.with_reason(f"{what} on {where} {state}", "" if status.building else status.reason)
