"""Logs with very long lines: memory stays small, and what is left out is said."""

from __future__ import annotations

import io
import sys
import tracemalloc

import msgspec
import pytest

from tests.store.test_runs import run
from yurt.cli import call
from yurt.lifecycle.logs import LONGEST, Printer
from yurt.model.state import LONGEST_TEXT, read_ending


@pytest.mark.parametrize("json", [False, True])
def test_a_line_that_never_ends(monkeypatch: pytest.MonkeyPatch, json: bool) -> None:
    out = io.TextIOWrapper(io.BytesIO(), write_through=True)
    monkeypatch.setattr(sys, "stdout", out)
    first, second = run(1), run(2)
    part = b"x" * (1 << 20)
    app = call.App()
    app.json = json
    with call.without_click(app), Printer() as printer:
        printer.begin([first, second], labels=True)
        tracemalloc.start()
        for _each in range(64):
            printer.wrote(first.id, "out", part)
        _now, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        printer.wrote(first.id, "out", b"end\nnext\n")
        printer.wrote(second.id, "out", b"short\n")
    assert peak < 16 << 20
    long, after, short = out.buffer.getvalue().decode().splitlines()
    left_out = (64 << 20) + 3 - LONGEST
    assert f"x [{left_out} more bytes of this line]" in long and len(long) < LONGEST + 300
    assert "next" in after and "short" in short


def test_a_long_text_in_exit_json() -> None:
    ending = {"code": 1, "started": 1.0, "ended": 2.0, "why": "y" * 5_000_000}
    found = read_ending(msgspec.json.encode(ending))
    assert found is not None and found.why == "y" * LONGEST_TEXT + f" [{5_000_000 - LONGEST_TEXT} more characters]"
    assert read_ending(msgspec.json.encode({**ending, "why": "short"})).why == "short"  # type: ignore[union-attr]
