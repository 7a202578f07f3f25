"""A new setting needs one row in the settings table and the fields of the hand-written structs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from tests.lifecycle.test_run import CONTEXTS, FACTS, NOWHERE
from yurt.config import facts as kept

SOURCE = Path(__file__).parent.parent.parent / "src" / "yurt"

TABLE = "RESOURCES = (\n"
FIELD = "    exclude_nodes: str | None = None\n"

KEYED = """\
    Row(option="licenses", cli="--licenses -L NAMES", key="licenses", resource="licenses", sbatch="licenses",
        scheduler=True, aliases=("licences",), example="matlab:2", help="Licenses it needs.",
        about="Licenses of a job."),
"""
ONLY_OPTION = """\
    Row(option="licenses", cli="--licenses -L NAMES", sbatch="licenses", scheduler=True, help="Licenses it needs."),
"""


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the source of yurt, and a user with a context."""
    shutil.copytree(SOURCE, tmp_path / "source" / "yurt", ignore=shutil.ignore_patterns("__pycache__", "lab"))
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "train.py").write_text("")
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "contexts.yaml").write_text(CONTEXTS)
    monkeypatch.chdir(tmp_path / "work")
    for name in ("config", "data"):
        monkeypatch.setenv(f"YURT_{name.upper()}_HOME", str(tmp_path / name))
    kept.save(NOWHERE, msgspec.structs.replace(FACTS, probed_at=time.time()))
    return tmp_path / "source"


def insert(file: Path, after: str, text: str) -> None:
    before = file.read_text()
    assert before.count(after) == 1
    file.write_text(before.replace(after, after + text))


def python(source: Path, *words: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, *words],
        env={**os.environ, "PYTHONPATH": str(source), **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout + done.stderr


def dry_run(source: Path, options: Sequence[str] = (), context: str = "big", **environment: str) -> str:
    words = ["run", "--context", context, "--dry-run", "--no-snapshot", *options, "train.py"]
    return python(source, "-m", "yurt", *words, **environment)


FLAGS = (
    "import yurt.api.options as o, yurt.lifecycle.plan.request; print(o.__file__, o.fields({'licenses': 'a:1'}, 'x'))"
)


def test_a_key_of_its_own(source: Path) -> None:
    insert(source / "yurt" / "model" / "settings.py", TABLE, KEYED)
    for name in ("run.py", "context.py"):
        insert(source / "yurt" / "model" / name, FIELD, "    licenses: str | None = None\n")
    assert "-L, --licenses NAMES" in (shown := python(source, "-m", "yurt", "run", "--help"))
    assert "Licenses it needs." in shown
    assert " --licenses=" not in dry_run(source)
    for found, by in (
        (dry_run(source, ["--licenses", "a:1"]), "flag"),
        (dry_run(source, YURT_LICENSES="a:1"), "$YURT_LICENSES"),
    ):
        assert " --licenses=a:1 " in found and f"# licenses: a:1 ({by})" in found
    Path("yurt.yaml").write_text("licenses: a:2\n")
    assert " --licenses=a:2 " in dry_run(source)
    Path("yurt.yaml").write_text("license: a:2\n")
    with pytest.raises(subprocess.CalledProcessError) as wrong:
        dry_run(source)
    assert "did you mean 'licenses'? (example: `licenses: matlab:2`)" in wrong.value.stderr
    Path("yurt.yaml").unlink()
    Path("../config/contexts.yaml").write_text(CONTEXTS + "    licences: a:3\n")
    assert " --licenses=a:3 " in dry_run(source)
    Path("train.py").write_text("#SBATCH --licenses=own\n")
    assert " --licenses=" not in dry_run(source).replace("#SBATCH --licenses", "")
    assert "licenses ignored: this machine has no scheduler" in dry_run(source, ["-L", "a"], context="local")
    assert "'licenses': 'a:1'" in (found := python(source, "-c", FLAGS)) and str(source) in found


def test_an_option_of_sbatch_with_a_flag(source: Path) -> None:
    insert(source / "yurt" / "model" / "settings.py", TABLE, ONLY_OPTION)
    assert " --licenses=a:1 " in dry_run(source, ["--licenses", "a:1"])
    assert " --licenses=b " in dry_run(source, ["--licenses", "a:1", "--sbatch-option", "licenses=b"])
    assert "'sbatch_options': {'licenses': 'a:1'}" in python(source, "-c", FLAGS)
