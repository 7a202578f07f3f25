"""How long yurt waits for ssh: until it is connected, for a connection of the user's own, for a part of a site."""

from __future__ import annotations

import os
import shlex
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from yurt.clocks import clocks, ending_by, within
from yurt.config.lock import locked
from yurt.errors import RefusedError, UnreachableError
from yurt.model.data import Manner
from yurt.model.progress import on_slow
from yurt.testing.waiting import eventually
from yurt.transport import exchange, rsync_copy, sockets
from yurt.transport.local import LocalHost
from yurt.transport.master import MASTER
from yurt.transport.passage import pass_through
from yurt.transport.ssh import SshHost


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("YURT_CLOCKS", "silent=2 again=1 slow=0.2")
    clocks.cache_clear()
    yield
    monkeypatch.undo()
    clocks.cache_clear()


def program(folder: Path, text: str) -> list[str]:
    """A program instead of ssh, which knows no settings of the user."""
    file = folder / "ssh"
    file.write_text(f'#!/bin/sh\ncase "$*" in *-G*) exit 0 ;; esac\ncd {folder} || exit 1\n{text}')
    file.chmod(0o755)
    return [str(file)]


@contextmanager
def listening(path: Path) -> Iterator[None]:
    """A process that accepts connections to a socket and never answers, as if it were stopped."""
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen()
        yield


def failure(host: SshHost) -> UnreachableError:
    with pytest.raises(UnreachableError) as caught:
        host.run("true")
    return caught.value


def ended(process: int) -> None:
    """Wait for the end of a process; it may not be reaped."""
    file = Path(f"/proc/{process}/status")
    eventually(lambda: not file.exists() or "State:\tZ" in file.read_text())


def test_an_answer_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchange, "MOST", 1 << 20)
    with pytest.raises(RefusedError, match="the answer of the site has more than 1 MB"):
        LocalHost().run("yes")


def test_a_stopped_connection_of_the_users_own(tmp_path: Path, quick: None) -> None:
    own = sockets.folder() / "it's own"
    config = tmp_path / "config"
    config.write_text(f'Host frozen\n  HostName 127.0.0.1\n  Port 1\n  ControlMaster auto\n  ControlPath "{own}"\n')
    with listening(own):
        error = failure(SshHost("frozen", "a@frozen", ["-F", str(config)]))
    assert (error.code, error.exit_code) == ("ssh-timeout", 4)
    assert error.message == "frozen: the connection that your ssh configuration shares does not respond"
    assert error.hint.endswith(f"`rm {shlex.quote(str(own))}`"), error.hint


def test_what_takes_too_long_to_connect_is_ended_with_its_children(tmp_path: Path, quick: None) -> None:
    host = SshHost("slow", "a@slow", program=program(tmp_path, "sleep 600 &\necho $! > child\nwait\n"))
    error = failure(host)
    assert error.code == "ssh-timeout" and error.message == "slow: the connection to a@slow timed out"
    ended(int((tmp_path / "child").read_text()))


def test_commands_at_once_make_one_attempt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that wait for another one's attempt get its error, and no advice about a login."""
    text = "echo x >> ledger\nuntil [ -e go ]; do sleep 0.05; done\necho 'ssh: Connection timed out' >&2\nexit 255\n"
    argv, waiting, lock = program(tmp_path, text), set[int](), sockets.lock

    def counted(file: str) -> int | None:
        found = lock(file)
        if found is None:
            waiting.add(threading.get_ident())
        return found

    monkeypatch.setattr(sockets, "lock", counted)
    with ThreadPoolExecutor(4) as pool:
        errors = [pool.submit(failure, SshHost("dead", "a@dead", program=argv)) for _ in range(4)]
        eventually(lambda: len(waiting) == 3)
        (tmp_path / "go").touch()
        found = [(each.result().code, each.result().message) for each in errors]
    assert found == [("ssh-timeout", "dead: the connection to a@dead timed out")] * 4
    assert (tmp_path / "ledger").read_text() == "x\n"


def test_another_command_that_does_not_get_through(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, quick: None
) -> None:
    monkeypatch.setattr("yurt.transport.master.MARGIN", -2.0)
    host = SshHost("dead", "a@dead", program=program(tmp_path, "exit 255\n"))
    descriptor = sockets.lock(f"{host.master.socket}.lock")
    assert descriptor is not None
    error = failure(host)
    os.close(descriptor)
    assert error.code == "ssh-timeout" and "another yurt command is still connecting to a@dead" in error.message


@pytest.mark.parametrize("text", ["exit 3\n", 'read -r line\neval "$*" < /dev/null\n'])
def test_dotfiles_that_end_the_shell_are_named(tmp_path: Path, text: str) -> None:
    """As `exit` and `read` in ~/.bashrc."""
    host = SshHost("odd", "a@odd", program=program(tmp_path, f"while [ $# -gt 1 ]; do shift; done\n{text}"))
    with listening(host.master.socket):
        error = failure(host)
    assert error.code == "login-shell" and "as with `exit` or `read` in ~/.bashrc (exit code" in error.message
    assert "check the dotfiles" in error.hint


def test_the_user_reads_what_part_of_a_site_is_slow(tmp_path: Path, quick: None) -> None:
    said = list[str]()

    def listen(text: str) -> None:
        said.append(text)
        (tmp_path / "go").touch()

    on_slow(listen)
    try:
        script = 'until [ -e "$1" ]; do sleep 0.05; done'
        assert LocalHost().run(script, str(tmp_path / "go"), part="Slurm").code == 0
    finally:
        on_slow(None)
    assert said == ["waiting for Slurm on this machine to respond; giving up after 2 s"]


@pytest.fixture
def said(quick: None) -> Iterator[list[str]]:
    """What the user reads about waits."""
    found = list[str]()
    on_slow(found.append)
    yield found
    on_slow(None)


def test_every_command_that_takes_long_is_said(tmp_path: Path, said: list[str]) -> None:
    script = 'until [ -e "$1" ]; do sleep 0.05; done'
    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(LocalHost().run, script, str(tmp_path / "go"))
        eventually(lambda: said)
        (tmp_path / "go").touch()
        assert done.result().code == 0
    assert said == ["waiting for a command on this machine to finish; giving up after 60 s"]


def test_a_part_that_prints_nothing_is_said(tmp_path: Path, said: list[str]) -> None:
    script = f"until [ -e {tmp_path}/go ]; do sleep 0.05; done; echo out"

    def output() -> bytes:
        with LocalHost().stream(script, silence=40, part="job 7") as stream:
            return b"".join(stream)

    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(output)
        eventually(lambda: said)
        (tmp_path / "go").touch()
        assert done.result() == b"out\n"
    assert said == ["waiting for job 7 on this machine to respond; giving up after 40 s"]


def test_a_session_that_is_in_use_is_said(said: list[str]) -> None:
    master = SshHost("far", "a@far", program=["no-such-program"]).master
    Path(f"{master.socket}.most").write_text("1")

    def second() -> None:
        with master.slot(time.monotonic() + 60):
            pass

    with ThreadPoolExecutor(1) as pool:
        with master.slot(time.monotonic() + 60):
            done = pool.submit(second)
            eventually(lambda: said)
        done.result()
    (text,) = said
    assert text.startswith("waiting for a free session of the ssh connection to far; giving up after "), text


def test_another_command_that_holds_a_lock_is_said(tmp_path: Path, said: list[str]) -> None:
    def second() -> None:
        with locked(tmp_path / "file"):
            pass

    with ThreadPoolExecutor(1) as pool:
        with locked(tmp_path / "file"):
            done = pool.submit(second)
            eventually(lambda: said)
        done.result()
    assert said == [f"waiting for another yurt command that has locked {tmp_path}/.file.lock"]


def test_a_stopped_connection_of_yurt_is_replaced(tmp_path: Path, quick: None) -> None:
    """The next command ends it, so that it never carries out what waits in its socket."""
    argv = program(tmp_path, 'case "$*" in *-M*) exit 0 ;; esac\nexit 3\n')
    host = SshHost("far", "a@far", program=argv)
    code = "import socket, sys, time; s = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1]); s.listen(); "
    named = ["bash", "-c", 'exec -a ssh "$@"', "bash", os.path.realpath(sys.executable)]
    path = str(host.master.socket)
    argv = [*named, "-c", f"{code}print(flush=True); time.sleep(600)", path, *MASTER, path, "a@far"]
    environment = {**os.environ, "PYTHONHOME": sys.base_prefix}
    with subprocess.Popen(argv, stdout=subprocess.PIPE, env=environment) as master:
        assert master.stdout is not None and master.stdout.readline()
        assert host.master.alive() and master.poll() is None, "it is only slow"
        master.send_signal(signal.SIGSTOP)
        eventually(lambda: not host.master.alive())
        assert master.wait(60) == -signal.SIGKILL


def test_a_site_that_did_not_respond_gets_a_moment(tmp_path: Path, quick: None) -> None:
    host = SshHost("far", "a@far", program=["no-such-program"])
    assert (host.limit(), host.limit("Slurm"), host.gave_up("Slurm")) == (2, 2, False)
    host.note_silent("Slurm")
    assert (host.limit(), host.limit("Slurm"), host.gave_up("Slurm")) == (2, 1, True)
    assert SshHost("far", "a@far", program=["no-such-program"]).limit("Slurm") == 1
    before = host.silent_since("Slurm")
    host.note_silent("Slurm")
    assert host.silent_since("Slurm") == before, "after a minute, it gets the full time again"
    file = Path(f"{host.master.socket}.Slurm")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    os.utime(file, (time.time() - 61, time.time() - 61))
    assert host.limit("Slurm") == 2
    host.note_response("Slurm")
    assert host.silent_since("Slurm") is None and not host.gave_up("Slurm")


def test_the_users_own_limit_is_kept_and_not_recorded(quick: None) -> None:
    host = SshHost("far", "a@far", program=["no-such-program"])
    with ending_by(time.monotonic() + 0.5):
        assert 0 < host.limit() <= 0.5
        with ending_by(None):
            assert host.limit() <= 0.5
        host.note_silent()
    assert host.silent_since() is None and host.limit() == 2
    with ending_by(time.monotonic() - 1):
        assert within(60) == 0.1


def transfer(host: SshHost, folder: Path) -> None:
    rsync_copy.get(host, "/far/", folder / "here/", Manner(), lambda _done, _total: None)


def command(host: SshHost, folder: Path) -> None:
    del folder
    pass_through(host, "true")


@pytest.mark.parametrize("what", [transfer, command])
def test_what_does_not_begin_is_ended(tmp_path: Path, quick: None, what: Callable[[SshHost, Path], None]) -> None:
    """As with a master that is stopped."""
    said = list[str]()
    host = SshHost("far", "a@far", program=program(tmp_path, "sleep 600 &\necho $! > child\nwait\n"))
    on_slow(said.append)
    try:
        with listening(host.master.socket), pytest.raises(UnreachableError) as caught:
            what(host, tmp_path)
    finally:
        on_slow(None)
    assert (caught.value.code, caught.value.message) == ("timed-out", "far: no response within 2 s")
    assert said == ["waiting for far to respond; giving up after 2 s"]
    assert host.gave_up()
    ended(int((tmp_path / "child").read_text()))
