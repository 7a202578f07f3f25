"""The folders of a user are those of platformdirs, also where yurt does not import it."""

from __future__ import annotations

import sys
from pathlib import Path

import platformdirs
import pytest

from yurt.config import paths


@pytest.mark.parametrize("xdg", [None, "", " ", "/somewhere/else", "relative"])
@pytest.mark.parametrize("home", ["/home/alice", "/home/alice/", None])
def test_folders_of_the_platform(xdg: str | None, home: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("YURT_CONFIG_HOME", "YURT_DATA_HOME", "SUDO_UID"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {"HOME": home, "XDG_CONFIG_HOME": xdg, "XDG_DATA_HOME": xdg}.items():
        if value is None:
            monkeypatch.delenv(name, raising=False)
        else:
            monkeypatch.setenv(name, value)
    assert paths.config_home() == Path(platformdirs.user_config_dir("yurt"))
    assert paths.data_home() == Path(platformdirs.user_data_dir("yurt"))


@pytest.mark.parametrize("named", ["/a/b", "/a//b/", "~/x", "x/../y", "."])
def test_a_named_folder(named: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("YURT_DATA_HOME", named)
    assert paths.data_home() == Path(named).expanduser().absolute()
    assert paths.data_folder() == str(paths.data_home())


@pytest.mark.skipif(sys.platform != "linux", reason="needs Linux; other platforms need platformdirs")
def test_usually_without_platformdirs(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("YURT_DATA_HOME", "XDG_DATA_HOME", "SUDO_UID"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", "/home/alice")
    monkeypatch.setitem(sys.modules, "platformdirs", None)
    assert paths.data_folder() == "/home/alice/.local/share/yurt"
