"""Hints of errors name verbs and options that exist, and put what the user can type between backticks."""

from __future__ import annotations

import pytest

from tests import hints
from tools.reference.sources import Raised, raised
from yurt.errors import CODES

NAMES = ("Debian", "Slurm")
"""Words that a message may begin with although they have a capital letter."""


@pytest.mark.parametrize("error", raised(), ids=lambda error: f"{error.file}:{error.line}")
def test_hints_name_what_exists(error: Raised) -> None:
    assert hints.wrong(error.hint) == []


@pytest.mark.parametrize("error", raised(), ids=lambda error: f"{error.file}:{error.line}")
def test_messages_are_one_sentence(error: Raised) -> None:
    first = error.message.split()[0].strip(":,'")
    assert not error.message.endswith((".", "!")) and "\n" not in error.message
    assert first[0].islower() or first.isupper() or first in NAMES or not first.isalpha()


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
