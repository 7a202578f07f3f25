"""homes.yaml: what yurt writes it reads back; every fault is named with its line."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from yurt.errors import UserError
from yurt.homes import config, watcher
from yurt.homes.config import Homes, PlaceSettings


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("YURT_CONFIG_HOME", str(tmp_path))
    return tmp_path


def test_what_is_saved_is_loaded() -> None:
    assert config.load() is None
    homes = Homes(
        places={"alpha": PlaceSettings(root="work", unison="/opt/unison"), "beta": PlaceSettings()},
        hub="alpha",
        keep="2d",
        interval="30m",
    )
    config.save(homes)
    assert config.load() == homes
    assert stat.S_IMODE(config.default_file().stat().st_mode) == 0o600
    assert (homes.keep_seconds, homes.interval_seconds) == (2 * 86400, 1800)
    assert homes.names == ["alpha", "beta"]


def test_the_defaults() -> None:
    homes = config.parse("places: {alpha: }\n", Path("homes.yaml"))
    assert homes == Homes(places={"alpha": PlaceSettings()})
    assert homes.names == ["local", "alpha"]
    assert homes.interval_seconds is None


FAULTS = {
    "plces: {}\n": "homes.yaml:1: plces is not a known key; did you mean places?",
    "hub: local\nplaces:\n  alpha: {rot: x}\n": "homes.yaml:3: places.alpha.rot is not a known key; did you mean root?",
    "keep: soon\n": "homes.yaml:1: keep must be a positive duration such as 30m, 12h or 90d",
    "unreadable: leave\n": "homes.yaml:1: unreadable must be `hold` or `skip`",
    "profile: ../x\n": "homes.yaml:1: profile must be the name of a Unison profile: letters, digits, '.', '_' and '-'",
    "places:\n  alpha:\n    address: -oX=y\n": "homes.yaml:3: places.alpha.address must be an address for ssh "
    "(example: `address: alice@login.big.example`)",
    "folder: homes\n": "homes.yaml:1: folder must be an absolute path, or begin with ~/",
    "folder: /\n": "homes.yaml:1: folder must be an absolute path, or begin with ~/",
    "hub: a\nhub: b\n": "homes.yaml:2: hub is set twice, in lines 1 and 2; keep one",
    "- alpha\n": "homes.yaml:1: the file must consist of `key: value` lines (example: `hub: local`)",
}


@pytest.mark.parametrize("text", FAULTS)
def test_faults(text: str) -> None:
    with pytest.raises(UserError) as raised:
        config.parse(text, Path("homes.yaml"))
    assert raised.value.message == FAULTS[text]


def test_another_user_must_not_be_able_to_change_it(folder: Path) -> None:
    config.save(Homes(places={"alpha": PlaceSettings()}))
    config.default_file().chmod(0o666)
    with pytest.raises(UserError) as raised:
        config.load()
    assert raised.value.code == "config-unsafe"


def test_a_watch_goes_on_while_the_file_is_edited(folder: Path) -> None:
    config.save(Homes(places={"alpha": PlaceSettings()}))
    valid = watcher.homes_now(None)
    config.default_file().write_text("hub: [\n")
    assert watcher.homes_now(valid) == valid
    with pytest.raises(UserError):
        watcher.homes_now(None)
    config.default_file().unlink()
    with pytest.raises(UserError):
        watcher.homes_now(valid)
