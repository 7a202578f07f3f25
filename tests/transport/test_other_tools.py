"""Hosts without the tools of GNU: busybox, toybox, and programs that behave like those of macOS."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import other_tools
from yurt.model.files import Pick
from yurt.testing.hosts import HostContract
from yurt.transport import tar
from yurt.transport.base import Host
from yurt.transport.local import LocalHost


class WithTools(HostContract):
    tools: str

    @pytest.fixture(scope="class")
    def folder(self, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
        folder = tmp_path_factory.mktemp("tools") / "bin"
        tools: str = request.cls.tools
        return other_tools.links(folder, tools)

    @pytest.fixture
    def host(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
        monkeypatch.setenv("PATH", str(folder))
        host = LocalHost()
        assert not host.gnu()
        return host


class TestBusybox(WithTools):
    tools = "busybox"


class TestToybox(WithTools):
    tools = "toybox"


@pytest.mark.parametrize("tools", ["busybox", "toybox", "bsd", "busybox tar"])
def test_put_get_and_tar(tools: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "bin"
    if tools == "bsd":
        other_tools.bsd(folder)
    else:
        other_tools.links(folder, tools.split(maxsplit=1)[0])
    if tools == "busybox tar":
        (folder / "tar").unlink()
        (folder / "tar").symlink_to((folder / "cat").resolve())
    monkeypatch.setenv("PATH", str(folder))
    host = LocalHost()
    content = bytes(range(256)) * 1000
    there = tmp_path / "there"
    names = ["plain", "a b", "it's", "line\nline", "-dash", "sub/deep/ü"]
    for name in names:
        host.put(content, str(there / name))
    host.get(str(there / "a b"), tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == content
    (there / "link").symlink_to("plain")
    target = tmp_path / "here"
    target.mkdir()
    brought = tar.bring(host, str(there), target, Pick(), lambda _done, _total: None)
    assert (brought.files, brought.matched) == (len(names) + 1, len(names) + 1)
    assert all((target / name).read_bytes() == content for name in [*names, "link"])
    again = tar.bring(host, str(there), target, Pick(), lambda _done, _total: None)
    assert again.files == 0, "sizes and times are known without -printf of GNU's find"


def test_a_folder_is_never_renamed_into_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(other_tools.bsd(tmp_path / "bin")))
    script = 'mkdir -p "$1/a" "$1/b/c" && mv -T "$1/a" "$1/b"; echo $?; mv -T "$1/a" "$1/d" && ls "$1"'
    answer = LocalHost().run(script, str(tmp_path / "x"))
    assert answer.text.split()[1:] == ["b", "d"] and answer.text.split()[0] != "0", answer
