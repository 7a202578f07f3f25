"""flag > environment > project > context > default, for every kind of setting."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest

from yurt.config import contexts, precedence
from yurt.config.precedence import Setting, decide, resolve
from yurt.errors import UserError
from yurt.model.context import LOCAL, Context, ContextResources
from yurt.model.context_keys import KEYS

CONTEXTS = """\
contexts:
  big:
    type: slurm
    slurm_url: me@big
    partition: from-context
    neptune: true
    resources: {cpu: 1, mem: 1G}
"""


@pytest.fixture(autouse=True)
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "config").mkdir()
    (tmp_path / "work").mkdir()
    (tmp_path / "config" / "contexts.yaml").write_text(CONTEXTS)
    monkeypatch.setenv("YURT_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path / "work")
    for key in KEYS:
        monkeypatch.delenv(f"YURT_{key.upper()}", raising=False)
    return tmp_path


@pytest.mark.parametrize("given", list(itertools.product([False, True], repeat=4)))
def test_the_highest_precedence_decides(places: Path, monkeypatch: pytest.MonkeyPatch, given: tuple[bool, ...]) -> None:
    flag, environment, project, context = given
    if environment:
        monkeypatch.setenv("YURT_PARTITION", "from-environment")
    if project:
        (places / "work" / "yurt.yaml").write_text("\npartition: from-project\n")
    if not context:
        (places / "config" / "contexts.yaml").write_text(CONTEXTS.replace("    partition: from-context\n", ""))
    found = resolve(contexts.named("big"), {"partition": "from-flag" if flag else None})["partition"]
    order = [
        (flag, "from-flag", "flag"),
        (environment, "from-environment", "$YURT_PARTITION"),
        (project, "from-project", "yurt.yaml:2"),
        (context, "from-context", "contexts.yaml:5"),
        (True, None, "default"),
    ]
    value, source = next((value, source) for there, value, source in order if there)
    assert found == Setting("partition", value, source)


def test_every_key_is_resolved(places: Path) -> None:
    found = resolve(contexts.named("big"))
    assert list(found) == [key for key in KEYS if key != "name"]
    assert found["type"] == Setting("type", "slurm", "contexts.yaml:3")
    assert found["track"] == Setting("track", True, "contexts.yaml:6")
    assert found["time"] == Setting("time", None, "default")
    assert found["tags"] == Setting("tags", (), "default")
    assert {setting.source for setting in resolve(LOCAL).values()} == {"default"}
    assert resolve(Context(name="new", type="local", venv="v"))["venv"] == Setting("venv", "v", "context")


def test_mappings_are_merged_key_by_key(places: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("YURT_RESOURCES", "mem=2G")
    (places / "work" / "pyproject.toml").write_text("[tool.yurt]\nresources = {cpu = 3, mem = '3G'}\n")
    found = resolve(contexts.named("big"), {"resources": {"gpu": "a100:2", "cpu": None}})
    assert found["resources"] == Setting(
        "resources",
        {"gpu": "a100:2", "mem": "2G", "cpu": 3},
        "flag, $YURT_RESOURCES, pyproject.toml:2, contexts.yaml:7",
    )
    seen = precedence.as_context("big", found)
    assert seen.resources == ContextResources(cpu=3, gpu="a100:2", mem="2G") and seen.slurm_url == "me@big"


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        ("tags", "a 'b c'", ("a", "b c")),
        ("variables", "A=1 B=2", {"A": "1", "B": "2"}),
        ("sbatch_options", "--nice=3", {"nice": "3"}),
        ("time", "90", 90),
        ("track", "off", False),
        ("ssh_options", "-J gate", ("-J", "gate")),
    ],
)
def test_values_from_the_environment(monkeypatch: pytest.MonkeyPatch, key: str, text: str, value: Any) -> None:
    monkeypatch.setenv(f"YURT_{key.upper()}", text)
    assert resolve(LOCAL)[key] == Setting(key, value, f"$YURT_{key.upper()}")


def test_fixed_settings_cannot_be_overridden(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("YURT_TYPE", "kubernetes")
    monkeypatch.setenv("YURT_LAB", "mine")
    monkeypatch.setenv("YURT_VENV", "")
    found = resolve(LOCAL, {"type": "kubernetes", "tags": (), "variables": {}})
    assert found["type"].value == "local" and found["lab"].value is None
    assert found["venv"].source == found["tags"].source == found["variables"].source == "default"


@pytest.mark.parametrize(
    ("variable", "flags", "message", "hint"),
    [
        (
            "YURT_NTASKS",
            {},
            "$YURT_NTASKS must be a positive integer, not 'x'",
            "for example: `export YURT_NTASKS=4`",
        ),
        (
            "YURT_RESOURCES",
            {},
            "$YURT_RESOURCES.x is not a key of resources; valid keys: cpu, gpu, mem",
            "for example: `export YURT_RESOURCES='cpu=4 gpu=1 mem=8G'`",
        ),
        (
            "",
            {"resources": {"cpu": "x"}},
            "--cpus must be a positive integer, not 'x'",
            "for example: `--cpus 4`",
        ),
        (
            "",
            {"variables": {"A": ["x"]}},
            "--var must be a mapping of names to text, not a mapping",
            "for example: `--var OMP_NUM_THREADS=4`",
        ),
        (
            "",
            {"cmd_type": "qsub"},
            "--cmd-type must be sbatch or srun, not 'qsub'",
            "for example: `--cmd-type sbatch`",
        ),
    ],
)
def test_faults(monkeypatch: pytest.MonkeyPatch, variable: str, flags: dict[str, Any], message: str, hint: str) -> None:
    if variable:
        monkeypatch.setenv(variable, "x")
    with pytest.raises(UserError) as caught:
        resolve(LOCAL, flags)
    assert (caught.value.message, caught.value.hint) == (message, hint)
    assert caught.value.code == ("config-invalid" if variable else "usage")


def test_decide_alone() -> None:
    assert decide("time", [("flag", None), ("b", "2h"), ("c", "3h")]) == Setting("time", "2h", "b")
    assert decide("variables", [("a", {"X": "1"}), ("b", {"X": "2", "Y": "3"})]).value == {"X": "1", "Y": "3"}
    assert decide("track", []) == Setting("track", False, "default")
