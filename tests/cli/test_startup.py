"""Start-up time, measured in instructions because they do not depend on the load of the machine."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.instructions import instructions
from tests.calls import YURT

HEAVY = ("rich", "jinja2", "yaml", "ruamel", "msgspec", "sqlite3", "asyncio", "subprocess", "importlib.metadata")


@pytest.fixture(scope="module")
def bare() -> int:
    """The instructions of Python itself."""
    return instructions([sys.executable, "-c", "pass"])


@pytest.mark.parametrize(
    ("words", "times"),
    [
        pytest.param([YURT, "--version"], 5.0, id="--version"),
        pytest.param([YURT, "--help"], 6.0, id="--help"),
        pytest.param(["-c", "import yurt"], 2.0, id="import"),
    ],
)
def test_start_up_budget(valgrind: str, bare: int, words: list[str], times: float) -> None:
    ours = instructions([sys.executable, *words])
    assert ours <= times * bare, f"{words} costs {ours / bare:.2f} times `python -c pass`"


@pytest.mark.parametrize(
    ("words", "times"),
    [
        pytest.param(["ps", "--cached"], 5.2, id="ps"),
        pytest.param(["run", "--dry-run", "train.py"], 8.2, id="run"),
    ],
)
def test_budget_of_frequent_verbs(valgrind: str, bare: int, words: list[str], times: float, tmp_path: Path) -> None:
    (tmp_path / "train.py").touch()
    homes = {"YURT_DATA_HOME": str(tmp_path / "data"), "YURT_CONFIG_HOME": str(tmp_path / "config"), "YURT_CLOCKS": ""}
    with contextlib.chdir(tmp_path):
        ours = instructions([sys.executable, YURT, *words], {**os.environ, **homes})
    assert ours <= times * bare, f"{words} costs {ours / bare:.2f} times `python -c pass`"


@pytest.mark.parametrize("argument", ["--version", "--help"])
def test_nothing_heavy_is_imported(argument: str) -> None:
    program = (
        "import sys; from yurt.cli import main; main.run([sys.argv[1]])\n"
        "print(*sorted(sys.modules), file=sys.stderr, sep='\\n')"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, argument], env=os.environ, capture_output=True, text=True, check=True
    )
    loaded = set(done.stderr.split())
    assert "click" in loaded
    assert not [name for name in HEAVY if name in loaded]
    assert not [name for name in loaded if name.startswith(("yurt.lifecycle", "yurt.lab"))]
