"""The names of files in a run folder: defined once, and equal in Python, in sh and in programs inside a job."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import yurt
from yurt.backends.local import runner, waiter, work_folder
from yurt.model import layout
from yurt.node import call, metrics

SOURCE = Path(yurt.__file__).parent
ALONE = (
    "node/",
    *(f"backends/local/{name}.py" for name in ("waiter", "runner", "work_folder", "staying/records")),
)
"""Programs that cannot import the names; a test below compares them."""

NAMES = {name: value for name, value in vars(layout).items() if name.isupper() and isinstance(value, str)}
TELLING = re.compile("|".join(re.escape(each) for each in NAMES.values() if re.search(r"\.\w|-\w", each)))
"""Unambiguous names: `exit.json`, but not `work`."""


def test_placeholders_are_replaced() -> None:
    assert (
        layout.fill_in('[ -e "$1/@EXIT@.d" ] || echo "$@" > @START@$k')
        == '[ -e "$1/exit.json.d" ] || echo "$@" > gen.$k'
    )


@pytest.mark.parametrize("unknown", ["@NO_SUCH@", "@CODES@", "@RE@", "@_@"])
def test_an_unknown_placeholder_is_an_error(unknown: str) -> None:
    with pytest.raises(ValueError, match=unknown):
        layout.fill_in(f"echo {unknown}")


def test_names_are_unique() -> None:
    assert len(set(NAMES.values())) == len(NAMES)


def test_standalone_programs_use_the_same_names() -> None:
    for program in (waiter, runner, work_folder):
        own = {name: value for name, value in vars(program).items() if name in NAMES}
        assert own and own == {name: NAMES[name] for name in own}
    assert metrics.NAME == layout.METRICS
    assert Path(call.TARGET).name == layout.RESULT


def spelled() -> Iterator[str]:
    """Yield the places where a script or a Python string, other than a message, contains a name literally."""
    for file in sorted(SOURCE.rglob("*.py")):
        name = file.relative_to(SOURCE).as_posix()
        if name.startswith((*ALONE, "lab/", "testing/", "model/layout.py")):
            continue
        nodes = list(ast.walk(ast.parse(file.read_text())))
        about = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
        for node in nodes:
            if isinstance(node, ast.Constant) and isinstance(node.value, str | bytes) and id(node) not in about:
                text = node.value if isinstance(node.value, str) else node.value.decode(errors="replace")
                if TELLING.search(text) and (" " not in text or "$" in text):
                    yield f"{name}:{node.lineno}"
    for file in sorted(SOURCE.rglob("*.sh")):
        name = file.relative_to(SOURCE).as_posix()
        for number, line in enumerate(file.read_text().splitlines(), 1):
            if TELLING.search(re.sub(r"(^|\s)#.*", "", line)) and not name.startswith(
                ("lab/", "backends/slurm/deep_probe")
            ):
                yield f"{name}:{number}"


def test_no_other_module_contains_the_names() -> None:
    assert list(spelled()) == []
