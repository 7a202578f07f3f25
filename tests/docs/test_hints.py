"""Hints of errors name verbs and options that exist, and put what the user can type between backticks."""

from __future__ import annotations

import pytest

from tests import hints
from tools.reference.sources import Raised, raised
from yurt.errors import CODES

pytestmark = pytest.mark.xdist_group("hints")  # a process reads the source code once

NAMES = ("Debian", "Python", "Slurm")
"""Words that a message may begin with although they have a capital letter."""


def test_hints_name_what_exists() -> None:
    found = [f"{error.file}:{error.line}: {problem}" for error in raised() for problem in hints.wrong(error.hint)]
    assert len(raised()) > 200 and not found


def test_messages_are_one_sentence() -> None:
    assert [f"{error.file}:{error.line}: {error.message}" for error in raised() if not sentence(error)] == []


def sentence(error: Raised) -> bool:
    """Whether a message begins in lower case or with a name, is one line and has no full stop at its end."""
    first = error.message.split()[0].strip(":,'")
    small = first[0].islower() or first.isupper() or first in NAMES or not first.isalpha()
    return small and not error.message.endswith((".", "!")) and "\n" not in error.message


def test_every_code_is_raised() -> None:
    assert set(CODES) - {error.code for error in raised()} <= {"interrupted", "bug"}


@pytest.mark.parametrize(
    ("hint", "problem"),
    [
        ("list runs with `yurt ps`", ""),
        ("run `yurt context show NAME`", ""),
        ("run `yurt contxt show NAME`", "unknown verb contxt"),
        ("run `yurt context list --fast`", "yurt context list has no option --fast"),
        ("use `--grid lr=0.1`", ""),
        ("use `--grit lr=0.1`", "no command has the option --grit"),
        ("list runs with yurt ps", "'yurt ps' is not between backticks"),
        ("use --grid", "--grid is not between backticks"),
        ("run `yurt run train.py -- --lr 0.1`", ""),
        ("run `yurt login nowhere`", "no context nowhere"),
        ("run `yurt ps --context nowhere`", "no context nowhere"),
        ("run `yurt login big`", ""),
        ("run `sudo yurt lab up --install`", ""),
        ("run `yurt lab upp`", "yurt lab has no verb upp"),
    ],
)
def test_the_check_itself(hint: str, problem: str) -> None:
    assert [text.partition(": ")[0] for text in hints.wrong(hint, ["local", "big"])] == [problem] * bool(problem)
