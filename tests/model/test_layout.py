"""The names of files in a run folder: spelled once, and the same for Python, for sh and for what runs inside a job."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import yurt
from yurt.backends.local import waiter
from yurt.model import layout
from yurt.node import call, metrics

SOURCE = Path(yurt.__file__).parent
ALONE = ("node/", "backends/local/waiter.py")
"""What cannot import the names; held to them below."""

NAMES = {name: value for name, value in vars(layout).items() if name.isupper() and isinstance(value, str)}
TELLING = re.compile("|".join(re.escape(each) for each in NAMES.values() if re.search(r"\.\w|-\w", each)))
"""Names that mean nothing else: `exit.json`, and not `work`."""


def test_a_script_gets_the_names_for_their_placeholders() -> None:
    assert (
        layout.fill_in('[ -e "$1/@EXIT@.d" ] || echo "$@" > @START@$k')
        == '[ -e "$1/exit.json.d" ] || echo "$@" > gen.$k'
    )


@pytest.mark.parametrize("unknown", ["@NO_SUCH@", "@CODES@", "@RE@", "@_@"])
def test_a_placeholder_that_is_no_name_is_an_error(unknown: str) -> None:
    with pytest.raises(ValueError, match=unknown):
        layout.fill_in(f"echo {unknown}")


def test_no_two_files_have_one_name() -> None:
    assert len(set(NAMES.values())) == len(NAMES)


def test_what_stands_alone_has_the_same_names() -> None:
    own = {name: value for name, value in vars(waiter).items() if name in NAMES}
    assert own and own == {name: NAMES[name] for name in own}
    assert metrics.NAME == layout.METRICS
    assert Path(call.TARGET).name == layout.RESULT


def spelled() -> Iterator[str]:
    """Where a script, or a string of Python's that is no text for people, has a name of its own."""
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


def test_nobody_else_spells_them() -> None:
    assert list(spelled()) == []
