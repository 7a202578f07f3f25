"""Syncs that are killed: the next one completes them, and nothing is lost."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.homes.star import Star
from yurt.homes import client, ledger, places, scripts
from yurt.testing.waiting import eventually

LARGE = 20_000_000


@pytest.fixture
def star(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Star:
    found = Star(tmp_path, monkeypatch)
    found.write("local", "old", "first", age=60)
    assert found.sync().code == 0
    found.write("local", "old", "second")
    write_large(found)
    return found


def write_large(star: Star) -> None:
    for at in range(2):
        (star.roots["local"] / f"large {at}").write_bytes(os.urandom(LARGE))


def unisons(star: Star) -> dict[str, int]:
    """Return the process ids of the running Unisons of a star by their place."""
    found = {}
    for folder in Path("/proc").iterdir():
        try:
            variables = (folder / "environ").read_bytes().split(b"\0")
            name = (folder / "comm").read_text().strip()
        except (OSError, NotADirectoryError):
            continue
        if name == "unison" and any(each.startswith(b"YURT_HOME_SYNC=") for each in variables):
            for place, home in {"local": os.environ["UNISON"], "alpha": f"{star.roots['alpha']}/.unison"}.items():
                if f"UNISON={home}".encode() in variables:
                    found[place] = int(folder.name)
    return found


def arriving(star: Star) -> Iterator[Path]:
    return star.roots["alpha"].glob(".unison.*.tmp")


def caught(star: Star) -> tuple[threading.Thread, dict[str, int]]:
    """Start a sync; return it while a file arrives, with its Unisons, of which that of this machine is stopped.

    A sync that ended before that is repeated with other files.
    """
    for _try in range(20):
        thread = threading.Thread(target=star.sync)
        thread.start()
        eventually(lambda thread=thread: any(arriving(star)) or not thread.is_alive(), pause=0.005)  # type: ignore[misc]
        with contextlib.suppress(KeyError, ProcessLookupError):
            local = unisons(star)["local"]
            os.kill(local, signal.SIGSTOP)
            found = unisons(star)
            if any(arriving(star)) and found.keys() == {"local", "alpha"}:
                return thread, found
            os.kill(local, signal.SIGCONT)
        thread.join()
        write_large(star)
    raise AssertionError("no sync was slow enough")


@pytest.mark.parametrize("victim", ["local", "alpha"])
def test_a_killed_unison(star: Star, victim: str) -> None:
    thread, found = caught(star)
    os.kill(found[victim], signal.SIGKILL)
    if victim != "local":
        os.kill(found["local"], signal.SIGCONT)
    thread.join()
    last = ledger.read().last("local-alpha")
    assert last is not None and (last.code, last.problem_code) == (3, "connection-lost"), last
    eventually(lambda: not unisons(star))
    assert star.sync().code == 0
    assert not any(arriving(star))
    assert star.read("alpha", "old") == "second"
    for at in range(2):
        name = f"large {at}"
        assert (star.roots["alpha"] / name).read_bytes() == (star.roots["local"] / name).read_bytes()


def test_a_server_whose_connection_was_lost_is_replaced(star: Star, monkeypatch: pytest.MonkeyPatch) -> None:
    """sshd may notice a lost connection after hours. Only what this machine left there is killed."""
    login = star.place("alpha").host
    argv = login.argv
    monkeypatch.setattr(login, "argv", lambda command: ["setsid", "--wait", *argv(command)])  # as on another machine
    thread, found = caught(star)
    os.kill(found["alpha"], signal.SIGSTOP)  # it cannot notice that its client is gone
    os.kill(found["local"], signal.SIGKILL)
    thread.join()
    assert unisons(star) == {"alpha": found["alpha"]}
    identity = Path(os.environ["UNISON"], "yurt", "id")
    mine = identity.read_text()
    identity.write_text("another machine\n")
    (outcome,) = star.sync().outcomes
    assert outcome.problem_code == "home-locked", outcome
    assert outcome.problem.startswith("another sync of alpha is running (from ")
    identity.write_text(mine)
    os.kill(found["alpha"], signal.SIGCONT)
    assert star.sync().code == 0
    assert star.read("alpha", "old") == "second"


def test_locks_that_a_killed_unison_left_in_its_archives(star: Star) -> None:
    for folder in (Path(os.environ["UNISON"]), star.roots["alpha"] / ".unison"):
        (archive,) = folder.glob("ar*")
        archive.with_name(f"lk{archive.name[2:]}").touch()
    assert star.sync().code == 0
    assert star.read("alpha", "old") == "second"
    assert not [*(star.roots["alpha"] / ".unison").glob("lk*")]


def test_a_killed_yurt(star: Star) -> None:
    """The Unison that it started ends by itself; until then its lock refuses another sync."""
    child = os.fork()
    if child == 0:
        star.sync()
        os._exit(0)
    eventually(lambda: any(arriving(star)), pause=0.005)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    eventually(lambda: not unisons(star))
    assert star.sync().code == 0
    for at in range(2):
        name = f"large {at}"
        subprocess.run(["cmp", star.roots["alpha"] / name, star.roots["local"] / name], check=True)


def test_unison_sees_the_end_of_its_ssh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise a Unison that waits for an answer would wait for ever after the connection was reset."""
    pair = places.pairs(Star(tmp_path, monkeypatch).homes)[0]
    side = client.side(pair, pair.server, client.Start(identity="id", name="laptop", lock=-1))
    for ssh, text in ((["false"], b""), (["sh", "-c", "echo begin; echo Unison RPC"], b"Unison RPC\n")):
        program = scripts.link(ssh, side, "begin")
        command = ["sh", "-c", program, "link", "host", "yurt-serve", "-server"]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as link:
            assert link.stdout is not None
            assert link.stdout.read() == text  # its end, although the input is still open
