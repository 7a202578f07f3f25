"""Verbs as another front end calls them: each returns the Result behind its JSON envelope, and prints nothing."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.user import User
from yurt import verbs
from yurt.verbs import agent, cancel, context, diff, fetch, import_, prune, prune_all, show
from yurt.verbs.result import Result

CALLS: dict[str, Callable[[], Result[Any]]] = {
    "show -": lambda: show.show("-"),
    "show @last-sweep": lambda: show.show("@last-sweep"),
    "cancel -": lambda: cancel.cancel(["-"]),
    "fetch @last-sweep": lambda: fetch.fetch(["@last-sweep"]),
    "prune --dry-run": prune.survey,
    "prune --all local --unfetched --dry-run": lambda: prune_all.survey("local", unfetched=True),
    "diff - @last-sweep": lambda: diff.diff("-", "@last-sweep"),
    "import local": lambda: import_.import_("local"),
    "agent once": agent.once,
    "context list": context.list_,
}


def test_a_verb_returns_what_its_command_prints(
    user: User, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Compares kind, warnings and exit code."""
    for run in (["--grid", "lr=1,2", "train.py"], ["train.py"]):
        assert user("run", "--wait", *run).code == 0
    for name, value in user.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(user.project)
    capfd.readouterr()
    for words, verb in CALLS.items():
        found = verb()
        assert capfd.readouterr() == ("", ""), words
        done = user(*words.split(), "--json")
        assert (found.kind, found.warnings, found.exit_code) == (done.json["kind"], done.json["warnings"], done.code)


@pytest.mark.parametrize("file", sorted(Path(*verbs.__path__).glob("*.py")), ids=lambda file: file.stem)
def test_no_verb_prints_or_exits(file: Path) -> None:
    names = {node.id for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.Name)}
    assert not names & {"print", "input", "exit", "SystemExit", "sys", "click"}
