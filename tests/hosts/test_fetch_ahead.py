"""The rsync of a repeated fetch, which starts before yurt is imported: used if it fits, stopped if it does not."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from yurt import fetch_ahead
from yurt.testing.waiting import eventually

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")

RUN = "1abcdef-x7q4z"
WORDS = ["fetch", RUN]
SHELL = {"YURT_SHELL": "ssh"}
SOURCE = "host:/runs/outputs/"


def has_ended(pid: str) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].startswith("Z")
    except (FileNotFoundError, ProcessLookupError):
        return True


class Fetch:
    """A fetch of a run, done by a shell script in the place of rsync."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.target = folder, folder / "results" / RUN
        self.socket = folder / "socket"
        self.target.mkdir(parents=True)
        self.socket.touch()

    def argv(self, script: str) -> list[str]:
        return ["sh", "-c", script, SOURCE, f"{self.target}/"]

    def save(self, script: str, *words: str) -> None:
        fetch_ahead.begin([*WORDS, *words])
        assert not fetch_ahead._started
        fetch_ahead.save(RUN, self.argv(script), SHELL, socket=str(self.socket), target=str(self.target))

    def begins(self, *words: str) -> bool:
        fetch_ahead.begin([*WORDS, *words])
        return bool(fetch_ahead._started)


@pytest.fixture
def fetch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Fetch]:
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "contexts.yaml").touch()
    monkeypatch.setenv("YURT_DATA_HOME", str(tmp_path))
    monkeypatch.setenv("YURT_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)
    yield Fetch(tmp_path)
    fetch_ahead.drop()
    fetch_ahead._arguments.clear()


def test_the_same_fetch_takes_over_the_process(fetch: Fetch) -> None:
    script = 'echo "output $YURT_SHELL"; echo errors >&2; exit 7'
    fetch.save(script)
    assert fetch.begins()
    started = fetch_ahead.take(fetch.argv(script), SHELL)
    assert started is not None and not fetch_ahead._started
    assert os.read(started.status, 1) == b"", "it has ended"
    assert os.read(started.output, 100) == b"output ssh\n"
    assert os.pread(started.errors, 100, 0) == b"errors\n"
    assert os.waitstatus_to_exitcode(os.waitpid(started.pid, 0)[1]) == 7
    started.close()


def test_another_fetch_stops_it_with_its_children(fetch: Fetch) -> None:
    script = (
        f"trap 'echo stopped > {fetch.folder}/stopped; exit' TERM; sleep 600 & echo $! > {fetch.folder}/begun; wait"
    )
    begun = fetch.folder / "begun"
    fetch.save(script)
    for argv, variables in ((fetch.argv("other"), SHELL), (fetch.argv(script), {"YURT_SHELL": "other"})):
        assert fetch.begins()
        eventually(lambda: begun.exists() and begun.read_text())
        child = begun.read_text().strip()
        assert fetch_ahead.take(argv, variables) is None
        assert (fetch.folder / "stopped").exists(), "it was asked before it was killed"
        eventually(partial(has_ended, child))
        begun.unlink()
        (fetch.folder / "stopped").unlink()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("taken", [False, True])
def test_a_signal_that_ends_yurt_stops_it(fetch: Fetch, number: signal.Signals, taken: bool) -> None:
    script = f"sleep 600 & echo $! > {fetch.folder}/begun; wait"
    fetch.save(script)
    then = f"from yurt.hosts import rsync_process, spawn; e = fetch_ahead.take({fetch.argv(script)!r}, {SHELL!r});"
    then += "p = rsync_process.Process(LocalHost(), None); f = open('/dev/null', 'w+b');"
    then += "p._follow(spawn.Started(e.pid, e.output), e.status, f, print)"
    program = f"from yurt import fetch_ahead; fetch_ahead.begin({WORDS!r})\nfrom yurt.hosts.local import LocalHost\n"
    program += then if taken else "import time; time.sleep(600)"
    with subprocess.Popen([sys.executable, "-c", program]) as process:
        begun = fetch.folder / "begun"
        eventually(lambda: begun.exists() and begun.read_text())
        process.send_signal(number)
        assert process.wait(60) == -number
    eventually(partial(has_ended, begun.read_text().strip()))


def test_what_must_be_the_same(fetch: Fetch, monkeypatch: pytest.MonkeyPatch) -> None:
    fetch.save("true")
    assert not fetch.begins("--json"), "another command line"
    (fetch.folder / "socket.noisy").touch()
    assert not fetch.begins(), "the login prints something"
    (fetch.folder / "socket.noisy").unlink()
    fetch.target.rmdir()
    fetch.target.touch()
    assert not fetch.begins(), "a file is in the place of the folder"
    fetch.target.unlink()
    assert fetch.begins(), "rsync makes the folder"
    fetch_ahead.drop()
    (fetch.folder / "results").rmdir()
    assert not fetch.begins(), "yurt makes the folder above, with a .gitignore"
    fetch.target.mkdir(parents=True)
    (fetch.folder / "config" / "contexts.yaml").write_text("contexts: {}\n")
    assert not fetch.begins(), "the contexts have changed"
    fetch.save("true")
    assert fetch.begins()
    fetch_ahead.drop()
    fetch.socket.unlink()
    assert not fetch.begins(), "the connection is closed"
    fetch.socket.touch()
    monkeypatch.chdir("/")
    assert not fetch.begins(), "another folder"


def test_only_a_run_that_is_named_by_its_id_is_saved(fetch: Fetch) -> None:
    fetch_ahead.begin(["fetch", "-"])
    fetch_ahead.save(RUN, fetch.argv("true"), SHELL, socket=str(fetch.socket), target=str(fetch.target))
    fetch_ahead.begin(["fetch", "-"])
    assert not fetch_ahead._started and not list(fetch.folder.glob("fetch-ahead*"))


def test_a_project_around_the_target(fetch: Fetch, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of a project are kept as NAME~ if results replace them; that is left to yurt."""
    below = fetch.folder / "below"
    below.mkdir()
    monkeypatch.chdir(below)
    words = ("--to", "../results")
    fetch.save("true", *words)
    assert fetch.begins(*words)
    fetch_ahead.drop()
    (fetch.folder / ".git").mkdir()
    assert not fetch.begins(*words)
    monkeypatch.chdir(fetch.folder)
    fetch.save("true", *words)
    assert not fetch.begins(*words), "in the current folder"


def test_the_result_of_a_process_that_has_succeeded(fetch: Fetch) -> None:
    target, go = f"{fetch.target}/", fetch.folder / "go"
    fetch.save(f'echo errors >&2; echo >&"$YURT_SIGN"; until [ -e {go} ]; do sleep 0.1; done; echo output')
    assert fetch.begins()
    assert fetch_ahead.settled("host:/other/", target, 60) is None
    assert fetch_ahead.settled(SOURCE, target, 60) == "errors\n", "the site has done its part"
    assert fetch_ahead.finished(0) is None
    go.touch()
    assert fetch_ahead.finished(60) == "output\n"
    assert fetch_ahead.finished(60) == "output\n", "it can still be taken over"
    fetch_ahead.done()
    assert fetch_ahead.settled(SOURCE, target, 60) is None


@pytest.mark.parametrize(("script", "seconds"), [("exit 23", 60), ("kill -9 $$", 60), ("sleep 600", 0)])
def test_a_process_that_has_not_succeeded_is_left_alone(fetch: Fetch, script: str, seconds: float) -> None:
    fetch.save(script)
    assert fetch.begins()
    assert (fetch_ahead.settled(SOURCE, f"{fetch.target}/", seconds) is None) == (seconds == 0)
    assert fetch_ahead.finished(seconds) is None
    taken = fetch_ahead.take(fetch.argv(script), SHELL)
    assert taken is not None
    fetch_ahead._started.append(taken)


def test_a_damaged_record_starts_nothing(fetch: Fetch) -> None:
    fetch.save("true")
    (record,) = fetch.folder.glob("fetch-ahead*")
    whole = record.read_bytes()
    assert record.stat().st_mode & 0o777 == 0o600
    for content in (b"", whole[: len(whole) // 2], b"not marshal", b"N"):
        record.write_bytes(content)
        assert not fetch.begins()
