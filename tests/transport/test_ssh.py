"""ssh as users have it: masters that die, sites that prompt, shells and dotfiles of all kinds, lost connections."""

from __future__ import annotations

import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.transport.conftest import site
from tests.user import end_masters
from yurt.errors import RefusedError, UnreachableError, YurtError
from yurt.lab import Lab
from yurt.lab.cluster import inside
from yurt.lab.relay import Rules
from yurt.testing.waiting import eventually
from yurt.transport import sockets
from yurt.transport.ssh import SshHost

pytestmark = pytest.mark.lab


def as_root(lab: Lab, cluster: str, script: str) -> str:
    pid = lab.cluster(cluster).pid(lab.cluster(cluster).spec.login.name)
    return subprocess.run(inside(pid, ["sh", "-ec", script]), capture_output=True, text=True, check=True).stdout


@contextmanager
def changed(lab: Lab, cluster: str, file: str, script: str) -> Iterator[None]:
    """Change a file of a login node for the time of the block and restart sshd."""
    lab.faults.heal(cluster)  # another test may have left a relay in its place
    restart = f"bash /etc/lab/service.sh sshd-outside stop; {script}; bash /etc/lab/service.sh sshd-outside start"
    as_root(lab, cluster, f"cp -p {file} /run/lab/saved")
    try:
        as_root(lab, cluster, restart)
        yield
    finally:
        as_root(lab, cluster, restart.replace(script, f"cat /run/lab/saved > {file}"))


def failure(host: SshHost) -> YurtError:
    with pytest.raises(YurtError) as caught:
        host.run("true", timeout=120)
    return caught.value


def masters(host: SshHost) -> list[int]:
    done = subprocess.run(["pgrep", "-f", str(host.master.socket)], capture_output=True, text=True, check=False)
    return [int(pid) for pid in done.stdout.split()]


def kill_masters(host: SshHost, number: int) -> None:
    for pid in masters(host):
        os.kill(pid, number)


@pytest.mark.parametrize("shell", ["tcsh", "fish", "zsh", "dash"])
def test_login_shells(lab: Lab, shell: str) -> None:
    path = f"/bin/{shell}" if shell != "fish" else "/usr/bin/fish"
    # Not asked over ssh: a connection keeps the login shell that it began with.
    if lab.root != Path("/") and not os.path.lexists(lab.root / path[1:]):
        pytest.skip(f"needs {shell} in the root file system of this version of Slurm; see tests on the installed one")
    with changed(lab, "alpha", "/etc/passwd", f"sed -i '/^alice:/s#:[^:]*$#:{path}#' /etc/passwd"):
        host = site(lab, "alpha")
        answer = host.run('echo "$1"; cat; exit 3', "it's $HOME!", stdin=b"in\n")
        assert (answer.code, answer.out) == (3, b"it's $HOME!\nin\n")
        host.put(b"content", "/tmp/yurt shell/file")
        assert shell in host.run("echo $SHELL").text


DOTFILES = {
    "set -u": "set -u\n",
    "umask 077": "umask 077\n",
    "noise on both": "echo noise; echo noise >&2; printf 'no newline'\n",
    "stdin eater": "echo; [ -t 0 ] && cat\n",
    "aliases and functions": "alias cat=false; head() { false; }; export -f head; PS1=x\n",
    "errors": "no-such-program; false\n",
}


@pytest.mark.parametrize("kind", list(DOTFILES))
def test_dotfiles(lab: Lab, kind: str) -> None:
    with changed(lab, "alpha", "/home/alice/.bashrc", f"cat > /home/alice/.bashrc <<'E'\n{DOTFILES[kind]}E\n:"):
        host = site(lab, "alpha")
        answer = host.run("echo answer")
        assert (answer.code, answer.out) == (0, b"answer\n")
        host.put(b"x", "/tmp/yurt-dot/x", mode=0o644)
        assert host.run("stat -c %a /tmp/yurt-dot/x; rm -r /tmp/yurt-dot").out == b"644\n"


LIES = """\
echo 'alice@alpha: Permission denied (publickey).' >&2
echo 'ssh: connect to host alpha port 22: Connection timed out' >&2
echo 'yurt: no master' >&2
echo 'mux_client_request_session: session request failed: Session open refused by peer' >&2
exec > /dev/null
(sleep 1; kill -9 $PPID) > /dev/null 2>&1 &
"""
"""A dotfile that prints what ssh prints when it cannot connect, hides the output, and ends the connection."""


@pytest.mark.parametrize("shared", [False, True], ids=["yurt's master", "user's own master"])
def test_words_of_the_site_do_not_mean_that_nothing_was_sent(lab: Lab, tmp_path: Path, shared: bool) -> None:
    host = own_master(lab, tmp_path) if shared else site(lab, "alpha")
    assert host.run("true").code == 0
    ledger = f"/tmp/ran-{secrets.token_hex(4)}"
    with changed(lab, "alpha", "/home/alice/.bashrc", f"cat > /home/alice/.bashrc <<'E'\n{LIES}E\n:"):
        with pytest.raises(UnreachableError) as caught:
            host.run(f"echo ran >> {ledger}")
        assert caught.value.code in ("connection-lost", "login-shell")  # whichever end comes first
    assert as_root(lab, "alpha", f"sleep 0.5; cat {ledger}; rm {ledger}") == "ran\n", "once, not repeated"


def test_what_ssh_says_before_the_session_is_its_own(lab: Lab, tmp_path: Path) -> None:
    """The user's own shared connection is opened by a command of its own; its refusal is final."""
    host = own_master(lab, tmp_path, user="nobody-of-that-name")
    error = failure(host)
    assert error.code in ("ssh-denied", "ssh-login-required") and error.exit_code in (4, 5)


def own_master(lab: Lab, folder: Path, user: str = "alice") -> SshHost:
    """A host for which the user's ssh configuration shares connections."""
    theirs = f"Host alpha\n  ControlMaster auto\n  ControlPath /tmp/own-{os.getpid()}-%C\n  ControlPersist 20\n"
    (folder / "config").write_text(theirs + (lab.instance.client / "ssh_config").read_text())
    return SshHost("alpha", f"{user}@alpha", ["-F", str(folder / "config")])


def test_home_that_cannot_be_written(lab: Lab) -> None:
    as_root(lab, "alpha", "chmod 500 /home/alice")
    try:
        assert site(lab, "alpha").run("touch ~/x 2> /dev/null || echo read-only").out == b"read-only\n"
    finally:
        as_root(lab, "alpha", "chmod 700 /home/alice")


def test_banner_of_200_lines(lab: Lab) -> None:
    with changed(lab, "beta", "/etc/lab/banner", "seq -f 'line %g of the banner' 200 > /etc/lab/banner"):
        answer = site(lab, "beta").run("echo answer; echo error >&2")
        assert (answer.out, answer.err) == (b"answer\n", b"error\n")


def test_one_session_at_a_time_is_enough(lab: Lab) -> None:
    with changed(
        lab, "alpha", "/etc/lab/sshd_config", "sed -i 's/^MaxSessions .*/MaxSessions 1/' /etc/lab/sshd_config"
    ):
        host = site(lab, "alpha")
        folder = f"/tmp/one-{secrets.token_hex(4)}"
        go = Path(f"/proc/{lab.cluster('alpha').pid('login')}/root{folder}/go")
        host.run('mkdir "$1"', folder)
        script = 'until [ -e "$1/go" ]; do sleep 0.05; done; echo "$2"'
        with ThreadPoolExecutor(6) as pool:
            answers = [pool.submit(host.run, script, folder, str(number), timeout=300) for number in range(6)]
            try:
                eventually(lambda: host.master.session_limit() < 8)
            finally:
                go.touch()
        assert [future.result().text for future in answers] == [f"{number}\n" for number in range(6)]
        host.run('rm -r "$1"', folder)


def test_at_most_eight_sessions(lab: Lab) -> None:
    """Each session prints how many there are when it starts; none exits before eight have started."""
    host = site(lab, "alpha")
    folder = f"/tmp/eight-{secrets.token_hex(4)}"
    seen = Path(f"/proc/{lab.cluster('alpha').pid('login')}/root{folder}")
    host.run('mkdir "$1"', folder)
    script = 'cd "$1" && : > "in.$2" && set -- in.* "$2" && until [ -e go ]; do sleep 0.05; done; echo $(($# - 1))'
    script += '; shift $(($# - 1)); rm "in.$1"'
    with ThreadPoolExecutor(20) as pool:
        answers = [pool.submit(host.run, script, folder, str(number), timeout=300) for number in range(20)]
        try:
            eventually(lambda: len(list(seen.glob("in.*"))) >= 8)
            time.sleep(1)  # time for a ninth session to start, if that were possible
            assert len(list(seen.glob("in.*"))) == 8
        finally:
            (seen / "go").touch()
        counts = [int(future.result().text) for future in answers]
    assert max(counts) == 8
    host.run('rm -r "$1"', folder)


def test_one_master_for_all(lab: Lab) -> None:
    """Many threads and processes that find no connection open only one."""
    host = site(lab, "alpha")
    program = (
        "import sys; from yurt.transport.ssh import SshHost; SshHost('alpha', 'alice@alpha', sys.argv[1:]).run('true')"
    )
    argv = [sys.executable, "-c", program, *host.master.options]
    others = [subprocess.Popen(argv) for _ in range(4)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: host.run("true"), range(8)))
    assert [other.wait() for other in others] == [0] * 4
    assert len(masters(host)) == 1
    assert host.master.socket.stat().st_mode & 0o077 == 0


def test_stale_socket_is_replaced(lab: Lab) -> None:
    host = site(lab, "alpha")
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(host.master.socket))
    assert host.master.socket.exists()
    assert host.run("echo ok").out == b"ok\n"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_dead_master_is_reopened(lab: Lab, number: int) -> None:
    host = site(lab, "alpha")
    host.run("true")
    kill_masters(host, number)
    assert host.run("echo again").out == b"again\n"


def test_master_killed_while_a_command_runs(lab: Lab) -> None:
    host = site(lab, "alpha")
    host.run("true")
    mark = f"/tmp/yurt-{secrets.token_hex(4)}"
    seen = Path(f"/proc/{lab.cluster('alpha').pid('login')}/root{mark}")
    with ThreadPoolExecutor(1) as pool:
        script = ': > "$1.begun"; until [ -e "$1.go" ]; do sleep 0.05; done; : > "$1.finished"'
        answer = pool.submit(host.run, script, mark, timeout=300)
        eventually(seen.with_suffix(".begun").exists)
        kill_masters(host, signal.SIGKILL)
        with pytest.raises(UnreachableError) as caught:
            answer.result()
    assert caught.value.code == "connection-lost"
    seen.with_suffix(".go").touch()
    eventually(seen.with_suffix(".finished").exists)


def test_connection_lost_in_the_middle_of_the_output(lab: Lab) -> None:
    lab.faults.delay("alpha", Rules(cut_at=200_000, direction="down", connections=1))
    try:
        host = site(lab, "alpha")
        with pytest.raises(UnreachableError) as caught:
            host.run("head -c 1000000 /dev/zero")
        assert caught.value.code == "connection-lost" and caught.value.exit_code == 4
        assert len(host.run("head -c 1000000 /dev/zero").out) == 1000000
    finally:
        lab.faults.heal("alpha")


def test_put_is_atomic_when_the_connection_is_lost(lab: Lab, tmp_path: Path) -> None:
    host = site(lab, "alpha")
    host.put(b"old", "/tmp/yurt-cut")
    end_masters(host.master.socket.parent)
    sockets.folder()
    for cut_at in (4_000, 60_000, 150_000):
        lab.faults.delay("alpha", Rules(cut_at=cut_at, direction="up", connections=1))
        with pytest.raises(UnreachableError):
            host.put(bytes(300_000), "/tmp/yurt-cut")
        lab.faults.heal("alpha")
        assert host.run("cat /tmp/yurt-cut; ls /tmp/yurt-cut*").text == "old/tmp/yurt-cut\n"
        end_masters(host.master.socket.parent)
        sockets.folder()
    host.run("rm -f /tmp/yurt-cut*")


def test_users_own_shared_connection_is_used(lab: Lab, tmp_path: Path) -> None:
    own = Path(f"/tmp/own-{os.getpid()}")
    config = tmp_path / "config"
    theirs = f"Host alpha\n  ControlMaster auto\n  ControlPath {own}\n  ControlPersist 60\n"
    config.write_text(theirs + (lab.instance.client / "ssh_config").read_text())
    host = SshHost("alpha", "alice@alpha", ["-F", str(config)])
    try:
        assert host.run("echo one").out == b"one\n"
        assert own.is_socket() and not host.master.socket.exists()
        connections = as_root(lab, "alpha", "pgrep -c -u alice sshd")
        assert host.run("echo two").out == b"two\n"
        assert as_root(lab, "alpha", "pgrep -c -u alice sshd") == connections
    finally:
        subprocess.run(["ssh", "-S", str(own), "-O", "exit", "x"], capture_output=True, check=False)


def test_through_a_jump_host(lab: Lab) -> None:
    """beta's login node, reachable only from alpha's: -J, as in `ssh_options` of a context."""
    lab.faults.link()
    try:
        config = str(lab.instance.client / "ssh_config")
        host = SshHost("far", "alice@10.77.100.2", ["-F", config, "-J", "alpha", "-o", "HostKeyAlias=beta"])
        assert host.run("hostname").out == b"login1\n"
        assert host.run("hostname").out == b"login1\n"
        assert len(masters(host)) == 1
    finally:
        lab.faults.unlink()


def test_another_program_instead_of_ssh(lab: Lab, tmp_path: Path) -> None:
    """`ssh_command`: a site's wrapper with its own arguments."""
    log = tmp_path / "log"
    wrapper = tmp_path / "site ssh"
    wrapper.write_text(f'#!/bin/sh\necho "$1" >> {log}\nshift\nexec ssh "$@"\n')
    wrapper.chmod(0o755)
    options = ["-F", str(lab.instance.client / "ssh_config")]
    host = SshHost("alpha", "alice@alpha", options, [str(wrapper), "--site-word"])
    assert host.run("echo ok").out == b"ok\n"
    assert set(log.read_text().splitlines()) == {"--site-word"}
    gone = SshHost("alpha", "alice@alpha", options, [str(tmp_path / "no-such-program")])
    assert failure(gone).code == "program-missing"


def test_site_that_asks_for_a_code(lab: Lab) -> None:
    error = failure(site(lab, "alpha", user="carol"))
    assert (error.code, error.exit_code, error.hint) == ("ssh-login-required", 4, "run `yurt login alpha`")


def test_host_keys_unknown_and_changed(lab: Lab, tmp_path: Path) -> None:
    known = tmp_path / "known"
    known.touch()
    error = failure(site(lab, "alpha", "-o", f"UserKnownHostsFile={known}"))
    assert (error.code, error.exit_code) == ("ssh-key-unknown", 4) and "fingerprint" in error.hint
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(tmp_path / "k")], check=True)
    known.write_text("alpha " + " ".join((tmp_path / "k.pub").read_text().split()[:2]) + "\n")
    error = failure(site(lab, "alpha", "-o", f"UserKnownHostsFile={known}"))
    assert (error.code, error.exit_code) == ("ssh-key-changed", 5) and "intercepting" in error.message
    assert "`ssh-keygen -R " in error.hint


def test_wrong_key(lab: Lab, tmp_path: Path) -> None:
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(tmp_path / "k")], check=True)
    error = failure(site(lab, "beta", "-o", f"IdentityFile={tmp_path / 'k'}", user="nobody"))
    assert (error.code, error.exit_code) == ("ssh-denied", 5)
    assert error.message == "beta: nobody@beta rejected your ssh key (accepted methods: publickey)"
    assert "`ssh nobody@beta`" in error.hint and "`yurt context show beta`" in error.hint


def test_no_such_host(lab: Lab) -> None:
    error = failure(SshHost("x", "alice@no-such-host.invalid", ["-F", "none"]))
    assert error.code == "ssh-no-such-host" and "no-such-host.invalid" in error.message


def test_nothing_listens(lab: Lab) -> None:
    error = failure(SshHost("x", "alice@127.0.0.1", ["-F", "none", "-p", "1"]))
    assert (error.code, error.exit_code) == ("ssh-refused", 4)


def test_no_route(lab: Lab) -> None:
    lab.faults.cut("alpha")
    try:
        assert failure(site(lab, "alpha")).code in ("ssh-no-route", "ssh-timeout")
    finally:
        lab.faults.heal("alpha")
    assert site(lab, "alpha").run("echo back").out == b"back\n"


def test_host_that_does_not_respond(lab: Lab) -> None:
    lab.faults.delay("alpha", Rules(cut_at=0, ending="stall", direction="both"))
    try:
        assert failure(site(lab, "alpha", "-o", "ConnectTimeout=2")).code == "ssh-timeout"
    finally:
        lab.faults.heal("alpha")


def test_full_disk(lab: Lab) -> None:
    lab.faults.full("alpha:scratch")
    try:
        with pytest.raises(RefusedError, match="the disk is full") as caught:
            site(lab, "alpha").put(bytes(50_000), "/lustre/scratch/alice/more")
        assert caught.value.code == "disk-full"
    finally:
        lab.faults.free("alpha:scratch")
    assert site(lab, "alpha").run("ls -A /lustre/scratch/alice | grep -c yurt- || true").out == b"0\n"


def test_folder_for_sockets_must_be_ones_own(lab: Lab, runtime: Path) -> None:
    runtime.mkdir(mode=0o755)
    with pytest.raises(RefusedError, match="not a private folder"):
        site(lab, "alpha")
    runtime.rmdir()
    runtime.symlink_to("/tmp")
    with pytest.raises(RefusedError, match="not a private folder"):
        site(lab, "alpha")
    runtime.unlink()
