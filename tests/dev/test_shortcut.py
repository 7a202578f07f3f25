"""The short way to a dev node: taken while the dev node is there, and left to yurt otherwise."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

import pytest

from yurt.dev import shortcut

NOISE = "kex_exchange_identification: Connection closed by remote host"


@pytest.fixture
def way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder whose file `there` says that the dev node is there. `yurt dev connect` is a script that says so."""
    monkeypatch.setenv("YURT_CONFIG_HOME", str(tmp_path / "100% mine"))
    script = tmp_path / "yurt"
    script.write_text('echo "yurt $*"; cat\n')
    monkeypatch.setattr(shortcut, "yurt", lambda name, *words: ["sh", str(script), *words, name])
    return tmp_path


def connected(given: str = "") -> str:
    done = subprocess.run(
        ["sh", "-c", shortcut.proxy("paper")], input=given, capture_output=True, text=True, check=False, timeout=60
    )
    return done.stdout + done.stderr


def test_it_is_taken_while_the_dev_node_is_there(way: Path) -> None:
    assert connected("first\n") == "yurt paper\nfirst\n"
    program = ["sh", "-c", "echo 'it is'; cat", "a\nb"]
    shortcut.save("paper", ["test", "-e", str(way / "there")], "n1 of alpha", program)
    assert connected("second\n") == "yurt paper\nsecond\n"
    (way / "there").touch()
    assert connected("third\n") == "it is\nthird\n"
    shortcut.forget("paper")
    assert connected("fourth\n") == "yurt paper\nfourth\n"


def test_yurt_says_why_it_failed(way: Path) -> None:
    """It is the only one: ssh reads something that it does not report."""
    shortcut.save("paper", ["true"], "n1 of alpha", ["sh", "-c", f"printf '%s\\n' '{NOISE}' why >&2; exit 3"])
    assert connected() == "yurt --lost paper\nSSH-2.0-yurt\nwhy\n"
    shortcut.save("paper", ["true"], "n1 of alpha", ["sh", "-c", "echo yurt: here >&2; echo begun; exit 3"])
    assert connected() == "begun\nyurt --lost paper\n"


def test_ssh_adds_nothing_to_what_yurt_says(way: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shortcut, "yurt", lambda *_words: ["sh", "-c", "echo reason >&2"])
    shortcut.save("paper", ["true"], "n1 of alpha", ["sh", "-c", f"echo '{NOISE}' >&2; exit 3"])
    proxy = f"sh -c {shlex.quote(shortcut.proxy('paper'))}".replace("%", "%%")
    argv = ["ssh", "-F", "none", "-o", "LogLevel=ERROR", "-o", f"ProxyCommand={proxy}", "x"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (255, "reason\n")


def test_what_takes_long_is_said(way: Path) -> None:
    until = f"until [ -s {way}/said ]; do sleep 0.1; done"
    shortcut.save("paper", ["true"], "n1 of alpha", ["sh", "-c", f"{until}; echo yurt: here >&2"])
    with (way / "said").open("wb") as said:
        subprocess.run(
            ["sh", "-c", shortcut.proxy("paper")], stdin=subprocess.DEVNULL, stderr=said, check=True, timeout=60
        )
    assert (way / "said").read_text() == "yurt: waiting for n1 of alpha to respond\n"


def test_a_connection_that_is_stopped_is_left_to_yurt(way: Path) -> None:
    shortcut.save("paper", ["sleep", "600"], "n1 of alpha", ["sh", "-c", "echo short"])
    assert connected("given\n") == "yurt paper\ngiven\nyurt: waiting for n1 of alpha to respond\n"


def test_the_end_of_ssh_ends_it(way: Path) -> None:
    """ssh hangs up on its ProxyCommand."""
    shortcut.save("paper", ["true"], "n1 of alpha", ["sh", "-c", "echo $$; exec sleep 600"])
    with subprocess.Popen(["sh", "-c", shortcut.proxy("paper")], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as ssh:
        assert ssh.stdout is not None and ssh.stdout.readline().strip().isdigit()
        subprocess.run(["kill", "-HUP", str(ssh.pid)], check=True)
        assert ssh.stdout.read() == b"" and ssh.wait(60) == 1


@pytest.mark.parametrize(
    ("content", "there"),
    [('{"phase": "ready", "x": 1}', True), ('{"phase": "ended"}', False), ("", False), (None, False)],
)
def test_whether_it_is_there(tmp_path: Path, content: str | None, there: bool) -> None:
    if content is not None:
        (tmp_path / "dev.json").write_text(content)
    assert (subprocess.run(["sh", "-c", shortcut.READY, str(tmp_path)], check=False).returncode == 0) == there
