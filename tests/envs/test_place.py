"""The setting `env_place`, and what follows from it without a site."""

from __future__ import annotations

import pytest

from tests.calls import Yurt
from yurt.config import paths
from yurt.contexts.folders import env_folders
from yurt.envs.declared import Declared
from yurt.envs.of_runs import prepare
from yurt.model import layout
from yurt.model.context import Context
from yurt.model.env import EnvPlace, RunEnv
from yurt.model.facts import Facts

BIG = Context(name="big", type="slurm", slurm_url="alice@big.example", storage_dir="/scratch/alice")


def test_folders() -> None:
    facts = Facts(probed_at=0, user="alice", host="login", variables={"HOME": "/home/alice"})
    found = env_folders(BIG, facts)
    assert found == {"scratch": "/scratch/alice/yurt", "tmpdir": "/scratch/alice/yurt", "home": "/home/alice/.yurt"}
    assert [place for place, base in found.items() if layout.in_home(layout.env(base, "0123"))] == ["home"]
    assert "home" not in env_folders(BIG, Facts(probed_at=0, user="alice", host="login"))


@pytest.mark.parametrize(
    ("kind", "wanted", "place"),
    [
        ("requirements", None, "scratch"),
        ("requirements", "tmpdir", "tmpdir"),
        ("conda", "tmpdir", "scratch"),
        ("conda", "home", "home"),
    ],
)
def test_conda_is_never_unpacked(kind: str, wanted: EnvPlace | None, place: str) -> None:
    declared = Declared(kind=kind, files={"x": b""})  # type: ignore[arg-type]
    context = Context(name="big", type="slurm", env_place=wanted)
    assert prepare.place_of(context, declared) == place


def test_what_is_prepared_for_two_places_is_kept_apart(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    monkeypatch.setenv("YURT_DATA_HOME", str(tmp_path))
    places: list[EnvPlace] = ["scratch", "home", "tmpdir"]
    envs = [RunEnv(address="0123", title="x", folder="/f", python="3.11", place=each) for each in places]
    assert len({prepare._file("big", env) for env in envs}) == 3
    assert prepare._file("big", envs[0]) == paths.data_home() / "envs" / "big-0123.json", "as before there were places"


def test_a_wrong_place(yurt: Yurt) -> None:
    done = yurt("run", "--env-place", "moon", "true")
    assert done.code == 2 and "--env-place must be scratch, home or tmpdir, not 'moon'" in done.err
