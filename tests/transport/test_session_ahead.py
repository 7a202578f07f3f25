"""The session of a submission that opens before yurt is imported: used if it fits, harmless if it does not."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.transport.conftest import site
from yurt.lab import Lab
from yurt.transport import session_ahead, wire
from yurt.transport.base import LONG
from yurt.transport.ssh import SshHost

PADDING = "\n".join(f"# line {number}" for number in range(LONG // 8))
SCRIPT = f'{PADDING}\neval "$yurt_first"\nread -r content; echo "$1 $content"; echo done >> "$2"\n'


@pytest.fixture(autouse=True)
def own_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("YURT_DATA_HOME", str(tmp_path))
    monkeypatch.delenv("YURT_CONTEXT", raising=False)
    yield
    session_ahead.drop()
    session_ahead._wanted.clear()


def sh(command: str, stdin: bytes, home: Path) -> bytes:
    environment = {"HOME": str(home), "PATH": "/usr/bin:/bin"}
    return subprocess.run(["sh", "-c", command], input=stdin, env=environment, capture_output=True, check=False).stdout


def kept(home: Path) -> wire.Parcel:
    """Let a home folder keep the script, and return the parcel for a session that has loaded it."""
    save = wire.pack(SCRIPT, ["it's", str(home / "effects")], keep="save")
    sh(save.command, save.stdin + b"saved\n", home)
    (home / "effects").unlink()
    first = "echo 'first line'\n"
    return wire.pack(SCRIPT, ["it's", str(home / "effects")], first=first, keep="opened", missing="yurt-missing-1")


def test_the_rest_follows_the_opener(tmp_path: Path) -> None:
    parcel = kept(tmp_path)
    command, opener = wire.opener(parcel.name, "yurt-missing-1")
    output = sh(command, opener + parcel.stdin + b"content\nleft\n", tmp_path)
    assert wire.unpack(parcel, output) == wire.Framed(b"first line\nit's content\n", 0)


def test_without_the_whole_rest_nothing_is_executed(tmp_path: Path) -> None:
    parcel = kept(tmp_path)
    command, opener = wire.opener(parcel.name, "yurt-missing-1")
    whole = opener + parcel.stdin
    calls = whole.index(b"yurt_main ")
    for length in {0, 10, len(opener) - 1, len(opener), len(opener) + 2, *range(len(opener) + 3, calls + 20, 7)}:
        output = sh(command, whole[:length], tmp_path)
        assert not (tmp_path / "effects").exists(), length
        found = wire.unpack(parcel, output)
        assert found is None or found.code is None


def test_a_script_that_is_gone_or_changed(tmp_path: Path) -> None:
    parcel = kept(tmp_path)
    command, opener = wire.opener(parcel.name, "yurt-missing-1")
    (file,) = (tmp_path / ".cache" / "yurt" / "scripts").iterdir()
    for content in (file.read_text() + f"\ntouch {tmp_path}/effects", file.read_text()[:-9], None):
        file.unlink() if content is None else file.write_text(content)
        output = sh(command, opener + parcel.stdin + b"content\n", tmp_path)
        assert parcel.missing in output and wire.unpack(parcel, output) is None
        assert not (tmp_path / "effects").exists()


class Next:
    """What the next yurt process does: it opens the session, then runs the script."""

    def __init__(self, lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
        self.host = site(lab, "alpha")
        self.effects = f"/home/alice/effects-{os.urandom(8).hex()}"
        self.started = list[str]()
        start = SshHost.start

        def counted(host: SshHost, parcel: wire.Parcel, err: None) -> object:
            self.started.append(parcel.name)
            return start(host, parcel, err)

        monkeypatch.setattr(SshHost, "start", counted)
        session_ahead.begin(["run", "x"])
        for _time in range(2):
            assert self.run() == "it's 1"
        assert len(self.started) == 2 and not session_ahead._opened
        self.started.clear()

    def begin(self, *words: str) -> bool:
        session_ahead._wanted.clear()
        session_ahead.begin(["run", "x", *words])
        return bool(session_ahead._opened)

    def run(self, script: str = SCRIPT) -> str:
        answer = self.host.run(script, "it's", self.effects, stdin=b"1\n", first=":", fixed=True, ahead=True)
        assert answer.code == 0, answer.errors
        return answer.text.strip()

    def times(self) -> int:
        """Return how often the script was executed."""
        return len(self.host.run('cat "$1"', self.effects).text.split())


@pytest.fixture
def following(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> Next:
    return Next(lab, monkeypatch)


@pytest.mark.lab
def test_a_session_opened_early_is_used(following: Next) -> None:
    for number in range(3):
        assert following.begin()
        assert following.run() == "it's 1"
        assert not following.started and following.times() == 3 + number
        following.started.clear()


@pytest.mark.lab
def test_faults_between_the_opening_and_the_rest(following: Next) -> None:
    assert following.begin()
    following.host.run('rm "$HOME"/.cache/yurt/scripts/*')  # also closes the session: a site may allow only one
    assert not session_ahead._opened
    assert following.begin()
    assert following.run() == "it's 1"
    assert following.times() == 3

    assert following.begin()
    assert following.run(f"{SCRIPT}: another script\n") == "it's 1", "the session has loaded another one"
    assert following.times() == 4

    following.run()
    assert following.begin()
    following.host.master.close()
    assert following.run() == "it's 1", "no master: it opens one"
    assert following.times() == 6


@pytest.mark.lab
def test_a_session_is_opened_only_for_a_similar_command(
    following: Next, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert following.begin("--time", "5")
    session_ahead.drop()
    assert not following.begin("--dry-run")
    assert not following.begin("--context", "beta")
    assert not following.begin("--context=beta")
    monkeypatch.setenv("YURT_CONTEXT", "beta")
    assert not following.begin()
    monkeypatch.delenv("YURT_CONTEXT")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert not following.begin()
