"""Hints of errors name verbs and options that exist, and put what the user can type between backticks."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import hints
from tools.reference.sources import LEFT_OUT, SOURCE, Raised, raised
from yurt.errors import CODES

pytestmark = pytest.mark.xdist_group("hints")  # a process reads the source code once

NAMES = ("Debian", "Python", "Slurm")
"""Words that a message may begin with although they have a capital letter."""


def test_hints_name_what_exists() -> None:
    found = [f"{error.file}:{error.line}: {problem}" for error in raised() for problem in hints.wrong(error.hint)]
    assert len(raised()) > 200 and not found


def test_every_command_in_a_text_is_one_that_yurt_parses() -> None:
    """Of messages, warnings, advice and help texts; docstrings of modules and functions are for developers."""
    found = [(file, text) for file in sorted(SOURCE.rglob("*")) for text in texts(file)]
    assert sum(len(hints.TYPED.findall(text)) for _file, text in found) > 300
    problems = [(str(file.relative_to(SOURCE)), text, *hints.wrong_commands(text)) for file, text in found]
    assert [each for each in problems if len(each) > 2] == []


def texts(file: Path) -> Iterator[str]:
    """Yield the texts of a file that users may read."""
    if file.suffix == ".toml":
        yield from re.findall(r'= "(.*)"', file.read_text())
    if file.suffix == ".sh":
        yield from (line.replace("\\", "") for line in file.read_text().splitlines() if line.lstrip()[:1] != "#")
    if file.suffix != ".py" or file.relative_to(SOURCE).parts[0] == LEFT_OUT:
        return
    nodes = list(ast.walk(ast.parse(file.read_text())))
    left_out = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}  # docstrings
    left_out |= {id(part) for node in nodes if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in nodes:
        if isinstance(node, ast.JoinedStr):
            yield filled(node)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in left_out:
            yield re.sub(r"(?<=[ =:])%[sd]", "WORD", node.value).replace("%s", "").replace("%d", "1")


def filled(node: ast.JoinedStr) -> str:
    """Return a text; what is only known at run time is an upper-case word, or nothing if it is the end of a word."""
    made = ""
    for part in node.values:
        made += str(part.value) if isinstance(part, ast.Constant) else "WORD" if made[-1:] in (" ", "=", ":") else ""
    return made


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
        ("run `yurt context list --fast`", "yurt context list"),
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
        ("run `yurt why`", ""),
        ("run `yurt why one two`", "yurt why"),
        ("run `yurt run --retries x train.py`", "yurt run"),
        ("run `yurt retry RUN --time 4h`", ""),
    ],
)
def test_the_check_itself(hint: str, problem: str) -> None:
    assert [text.partition(": ")[0] for text in hints.wrong(hint, ["local", "big"])] == [problem] * bool(problem)
