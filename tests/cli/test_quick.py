"""The parser of the frequent verbs reads a command line as click does, or leaves it to click."""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from typing import Any

import click
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from yurt.cli import quick
from yurt.cli.call import App
from yurt.cli.declare import DeclaredVerb
from yurt.cli.root import VERBS, root


def by_click(arguments: list[str]) -> tuple[str, dict[str, Any], dict[str, Any]] | None:
    """Return the verb, the values of its parameters and the global options, as click reads them; None for an error."""
    try:
        with root.make_context("yurt", [*arguments]) as outer:
            name, command, rest = root.resolve_command(outer, [*outer._protected_args, *outer.args])
            if command is None or name is None:
                return None
            with command.make_context(name, rest, parent=outer) as inner:
                return name, inner.params, vars(outer.ensure_object(App))
    except (click.ClickException, click.exceptions.Exit):
        return None


def by_quick(arguments: list[str]) -> tuple[str, dict[str, Any], dict[str, Any]] | None:
    found = quick.parse(arguments)
    return None if found is None else (found.verb.name, found.values, vars(found.app))


def declared(name: str) -> DeclaredVerb:
    module, _, attribute = VERBS[name][0].partition(":")
    found = getattr(sys.modules[module], attribute)
    assert isinstance(found, DeclaredVerb)
    return found


for _name in quick.VERBS:
    root.get_command(click.Context(root), _name)
FLAGS = sorted({flag for name in quick.VERBS for each in declared(name).parameters for flag in each.opts})
VALUES = ["", "-", "--", "5", "0", "x y", "10m", "a=1", "lr=1,2", "alpha", "@last", "options", "-5", "é", "run", "ps"]
WORD = st.one_of(
    st.sampled_from(FLAGS),
    st.sampled_from(VALUES),
    st.tuples(st.sampled_from(FLAGS), st.sampled_from(VALUES)).map("=".join),
    st.sampled_from(["-qv", "-n5", "--cach", "--help", "-h", "--no-such", "--version"]),
)


@settings(max_examples=400, deadline=None)
@given(st.lists(WORD, max_size=2), st.sampled_from([*quick.VERBS, "retry"]), st.lists(WORD, max_size=6))
def test_both_parsers_agree(before: list[str], verb: str, after: list[str]) -> None:
    arguments = [*before, verb, *after]
    quickly = by_quick(arguments)
    if quickly is not None:
        assert quickly == by_click(arguments)


@pytest.mark.parametrize(
    "line",
    [
        "ps",
        "ps --cached",
        "--json ps -n 5 --filter state=running --filter lr=0.1",
        "ps --context alpha --all --wide",
        "run train.py -- --lr 0.1",
        "run -f --time 2h --cpus 4 --mem 8G --gpus a100:1 train.py --lr 0.1",
        "run --grid lr=0.1,0.01 --grid=seed=1..3 --max-parallel 4 train.py",
        "run --style hydra --dry-run -v python -m pkg --help",
        "run -- true",
        "show -",
        "show @last-sweep --sort accuracy -n 3",
        "logs -f x7q4z",
        "logs --tail 20 x7q4z 8m2kd --err",
        "wait - --filter lr=0.1",
    ],
)
def test_usual_command_lines_need_no_click(line: str) -> None:
    quickly = by_quick(line.split())
    assert quickly is not None
    assert quickly == by_click(line.split())


@pytest.mark.parametrize(
    "line",
    [
        "ps x",
        "ps --help",
        "ps -n 0",
        "ps -n",
        "ps --cached=1",
        "show",
        "show a b",
        "logs",
        "run --no-such train.py",
        "ps -qv",
    ],
)
def test_click_reads_the_rest(line: str) -> None:
    assert by_quick(line.split()) is None


def test_plain_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for value in ("", "0", "1", "yes", "maybe"):
        monkeypatch.setenv("YURT_PLAIN", value)
        quickly = by_quick(["ps"])
        assert quickly is None or quickly == by_click(["ps"])


@pytest.mark.parametrize("words", [["ps", "--cached"], ["ps"], ["ps", "--json"], ["run", "--dry-run", "true"]])
def test_click_is_not_imported(words: list[str], tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("YURT_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("YURT_CONFIG_HOME", str(tmp_path / "config"))
    program = "import sys; from yurt.cli import main; main.run(sys.argv[1:]); print(*sys.modules, file=sys.stderr)"
    done = subprocess.run(
        [sys.executable, "-c", program, *words], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    loaded = set(done.stderr.split())
    assert "msgspec" in loaded
    assert not loaded & ({"click", "inspect", "dataclasses", "importlib.metadata"} - msgspecs_own())


@cache
def msgspecs_own() -> set[str]:
    """Return the modules that msgspec imports: with typing_extensions, which development packages need, `inspect`."""
    program = "import sys, msgspec; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(done.stdout.split())
