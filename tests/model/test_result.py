"""Verbs as another front end calls them: each returns the Result behind its JSON envelope, and prints nothing."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import yurt
from tests.user import User
from yurt.agent import agent
from yurt.contexts import context
from yurt.lifecycle import cancel, diff, fetch, import_, prune, prune_all, show
from yurt.model.result import Result

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


PACKAGE = Path(*yurt.__path__)


def test_no_verb_prints_or_exits() -> None:
    """What returns a Result only returns it. Where its command is in the same file, only the command prints."""
    seen, wrong = 0, []
    for file in sorted(PACKAGE.rglob("*.py")):
        tree = ast.parse(file.read_text())
        verbs = [node for node in tree.body if isinstance(node, ast.FunctionDef) and _of(node.returns) == "Result"]
        seen += len(verbs)
        for node in verbs if _has_command(tree) else [tree] if verbs else []:
            names = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
            if names & {"print", "input", "exit", "SystemExit", "sys", "click"}:
                wrong.append(f"{file.relative_to(PACKAGE)}: {getattr(node, 'name', 'module')}")
    assert seen > 50 and not wrong


def _of(returns: ast.expr | None) -> str:
    return ast.unparse(returns).partition("[")[0] if returns is not None else ""


def _has_command(tree: ast.Module) -> bool:
    """Whether a function of the file is declared as a command."""
    found = (each for node in tree.body if isinstance(node, ast.FunctionDef) for each in node.decorator_list)
    return any(ast.unparse(each).partition("(")[0] == "verb" for each in found)
