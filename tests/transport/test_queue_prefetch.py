"""A prefetched query is sent once, and its answer is used only for the same query."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.transport.conftest import site
from yurt.lab import Lab
from yurt.transport import queue_prefetch

pytestmark = pytest.mark.lab

SCRIPT = 'echo "$1" && cat && echo asked >> "$2"'

CALL = """\
import sys
from yurt.transport import queue_prefetch
queue_prefetch.begin(["ps"])
from yurt.transport.ssh import SshHost
host = SshHost("alpha", "alice@alpha", ["-F", sys.argv[1]])
queue_prefetch.prepare("ps", b"")
answer = host.run(sys.argv[2], *sys.argv[3:5], stdin=sys.argv[5].encode(), prefetch=True)
print(answer.text, end="")
"""


@pytest.fixture
def asking(lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, runtime: Path) -> tuple[list[str], str]:
    monkeypatch.setenv("YURT_DATA_HOME", str(tmp_path))
    count = f"/lustre/scratch/alice/{tmp_path.name}-{os.getpid()}"
    return [sys.executable, "-c", CALL, str(lab.instance.client / "ssh_config"), SCRIPT], count


def call(argv: list[str], *words: str) -> str:
    return subprocess.run([*argv, *words], capture_output=True, text=True, check=True).stdout


def test_each_query_is_sent_once(asking: tuple[list[str], str], lab: Lab, tmp_path: Path) -> None:
    argv, count = asking
    for turn in range(1, 4):
        assert call(argv, "one", count, "what follows") == "one\nwhat follows"
        assert site(lab, "alpha").run(f"wc -l < {count}").text.strip() == str(turn)
    (file,) = tmp_path.glob("ahead-*")
    assert file.stat().st_mode & 0o777 == 0o600


def test_another_query_gets_its_own_answer(asking: tuple[list[str], str]) -> None:
    argv, count = asking
    assert call(argv, "one", count, "first") == "one\nfirst"
    assert call(argv, "two", count, "first") == "two\nfirst"
    assert call(argv, "two", count, "second") == "two\nsecond"
    assert call(argv, "two", count, "second") == "two\nsecond"


def test_without_a_connection_or_with_a_broken_file(
    asking: tuple[list[str], str], lab: Lab, tmp_path: Path, runtime: Path
) -> None:
    argv, count = asking
    assert call(argv, "one", count, "x") == "one\nx"
    site(lab, "alpha").master.close()
    assert call(argv, "one", count, "x") == "one\nx"
    for broken in (b"", b"\0\1\2", os.urandom(300)):
        (file,) = tmp_path.glob("ahead-*")
        file.write_bytes(broken)
        assert call(argv, "one", count, "x") == "one\nx"


def test_a_master_that_died(asking: tuple[list[str], str], lab: Lab) -> None:
    argv, count = asking
    assert call(argv, "one", count, "x") == "one\nx"
    host = site(lab, "alpha")
    done = subprocess.run(
        ["ssh", "-S", str(host.master.socket), "-O", "check", "x"], capture_output=True, text=True, check=True
    )
    os.kill(int(done.stderr.split("pid=")[1].split(")")[0]), 9)
    assert call(argv, "one", count, "x") == "one\nx"


@pytest.mark.parametrize(
    "words", [["ps", "--cached"], ["ps", "--help"], ["cancel", "x"], [], ["run", "a", "b", "c", "ps"]]
)
def test_other_commands_prefetch_nothing(words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue_prefetch, "_file", lambda _verb: pytest.fail("read the saved query"))
    queue_prefetch.begin(words)


def test_forget_deletes_the_saved_query(asking: tuple[list[str], str], tmp_path: Path) -> None:
    argv, count = asking
    assert call(argv, "one", count, "x") == "one\nx"
    assert list(tmp_path.glob("ahead-*"))
    queue_prefetch.forget()
    queue_prefetch.forget()
    assert not list(tmp_path.glob("ahead-*"))
