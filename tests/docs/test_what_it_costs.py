"""Checks the table of docs/explanation/what-it-costs.md: its commands exist, and its counts are those of the lab."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from tests.user import User

PAGE = Path(__file__).parent.parent.parent / "docs" / "explanation" / "what-it-costs.md"
ROW = re.compile(r"^\| `([^`]+)`([^|]*) \| (.*) \|$", re.MULTILINE)
COLUMNS = 7


def rows() -> list[tuple[str, str, list[int]]]:
    """Return the command, the rest of the label and the numbers of each row."""
    text = PAGE.read_text().partition("<!-- costs: begin -->")[2].partition("<!-- costs: end -->")[0]
    found = ROW.findall(text)
    assert len(found) == len(text.strip().splitlines()) - 2, "a row that cannot be read"
    return [(verb, rest, [int(each.replace(",", "")) for each in cells.split(" | ")]) for verb, rest, cells in found]


def test_the_table_names_commands_that_exist(user: User) -> None:
    every = rows()
    assert len(every) > 20
    for verb in {verb.replace(" -f", "") for verb, _rest, _numbers in every}:
        shown = user.quick(*verb.split(), "--help")
        assert (shown.code, f"yurt {verb}" in shown.out) == (0, True), verb


def test_the_numbers_are_plausible() -> None:
    """All columns are there; only `login` opens connections, and races, whose clusters ask each other."""
    for verb, rest, numbers in rows():
        assert len(numbers) == COLUMNS, (verb, rest)
        connections, sessions, sent, received, _files, programs, here = numbers
        assert (connections > 0) == (verb == "login" or "race" in rest) and here > 0, (verb, rest)
        assert (sessions > 0) == (sent > 0) == (received > 0) == (programs > 0), (verb, rest)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("strace") is None, reason="needs the Debian package strace")
def test_the_counts_are_those_of_the_lab() -> None:
    """Sessions of submissions, queries and cancellations as on the page."""
    from benchmarks.costs import Measurement, submissions
    from benchmarks.side_by_side import YURT, linked, project

    page = {verb + rest: numbers for verb, rest, numbers in rows()}
    with linked() as bench:
        for name in ("alpha", "beta"):
            bench.call([YURT, "context", "probe", name])
        measure = Measurement(bench, project(bench.home / "project", files=200))
        submissions(measure)
    assert not measure.failed
    for label, cost in measure.rows.items():
        assert list(cost[:2]) == page[label][:2], label
