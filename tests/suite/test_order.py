"""The order of tests is drawn from a number; groups stay together; skips say what they need."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

import pytest

from tests.suite import environment, report
from tests.suite.order import TIME_LEFT
from tests.suite.slow import SLOW

MADE_UP = {
    "conftest.py": "import pytest\n"
    "@pytest.fixture(scope='module')\ndef costly(): pass\n"
    "@pytest.fixture(scope='class')\ndef dear(): pass\n",
    "test_single.py": "import pytest\n@pytest.mark.parametrize('n', range(12))\ndef test_it(n): pass\n",
    "test_module.py": "import pytest\n@pytest.mark.parametrize('n', range(6))\ndef test_it(n, costly): pass\n",
    "test_lab.py": "import pytest\npytestmark = pytest.mark.lab\n"
    "@pytest.mark.parametrize('n', range(6))\ndef test_it(n): pass\n"
    "class TestOne:\n    @pytest.mark.parametrize('n', range(4))\n    def test_it(self, n, dear): pass\n"
    "class TestTwo(TestOne): pass\n",
    "pytest.ini": "[pytest]\nmarkers =\n    lab: on the lab\n",
}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name, text in MADE_UP.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def run(tree: Path, *arguments: str) -> str:
    """Run the tests of a tree with the plugin alone."""
    argv = [sys.executable, "-m", "pytest", "-p", "tests.suite.order", "-p", "no:cacheprovider", *arguments]
    variables = {**os.environ, "PYTHONPATH": str(environment.ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(argv, cwd=tree, env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done
    return done.stdout


def order(tree: Path, seed: int, *files: str) -> list[str]:
    listed = run(tree, "--collect-only", "-q", "--seed", str(seed), *files)
    return [line for line in listed.splitlines() if "::" in line]


def test_an_order_is_drawn_and_keeps_groups(tree: Path) -> None:
    first = order(tree, 7)
    assert len(first) == 32 and order(tree, 7) == first and order(tree, 8) != first
    kinds = [each.replace("test_lab.py::Test", "test_lab_group.py::").partition("::")[0] for each in first]
    ranks = ["test_lab_group.py", "test_lab.py", "test_module.py", "test_single.py"]
    assert [kind for kind, _ in groupby(kinds)] == ranks
    assert len(list(groupby(each.rpartition("::")[0] for each in first[:8]))) == 2, "classes are not mixed"
    alone = order(tree, 7, "test_single.py")
    assert alone == first[-12:] != sorted(alone), "some tests have the order that they have among all"


def test_workers_draw_the_same_order(tree: Path) -> None:
    assert "32 passed" in run(tree, "-p", "xdist", "-n", "2", "--dist", "loadgroup", "-q")


def test_files_in_the_order_given_until_it_is_too_late(tree: Path) -> None:
    files = ("test_single.py", "test_lab.py")
    found = [each.partition("::")[0] for each in order(tree, 7, "--until", "1", *files)]
    assert list(dict.fromkeys(found)) == list(files)
    shown = run(tree, "-rs", "--until", "1", *files)
    assert "26 skipped" in shown and "needs more time" in shown


def test_a_table_of_skips() -> None:
    skipped = {"needs root": ["tests/a.py::x", "tests/a.py::y"], SLOW: ["tests/b.py::z"] * 3, TIME_LEFT: ["c.py::x"]}
    assert list(report.skips(skipped)) == [
        "      3  needs `make test SLOW=1`",
        "      2  needs root (tests/a.py::x, …)",
        f'      1  {TIME_LEFT}: make test ONLY="c.py"',
    ]


def reasons() -> Iterator[tuple[str, str]]:
    """Yield where each skip is, and the beginning of its reason."""
    folders = (environment.ROOT / "tests", environment.ROOT / "src" / "yurt" / "testing")
    for file in (file for folder in folders for file in folder.rglob("*.py")):
        text = file.read_text()
        if "skip" not in text or file == Path(__file__):
            continue
        for node in ast.walk(ast.parse(text)):
            name = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
            if isinstance(node, ast.Call) and re.fullmatch(r"pytest\.(mark\.)?(skip|skipif|importorskip)", name):
                given = [each.value for each in node.keywords if each.arg == "reason"]
                given += node.args if name.endswith(".skip") else []
                reason = ast.unparse(given[0]) if given else "none"
                yield f"{file.relative_to(environment.ROOT)}:{node.lineno}", reason.removeprefix("f").strip("'\"")


def test_each_skip_says_what_it_needs() -> None:
    named = ("SLOW", "TIME_LEFT")
    found = dict(reasons())
    assert len(found) > 40
    assert {at: reason for at, reason in found.items() if not reason.startswith(("needs ", *named))} == {}
