"""ssh to dev nodes: one name everywhere, the environment of the job, known host keys; nobody else gets in."""

from __future__ import annotations

import json
import os
import shlex
import socket
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pexpect
import pytest

from tests.calls import YURT
from tests.lab.conftest import Ssh
from tests.laptop import Laptop
from yurt.lab import Lab
from yurt.testing.waiting import eventually

pytestmark = pytest.mark.lab


CONTEXTS = ["alpha", "beta", *(["local"] if os.environ.get("SLOW_TESTS") else [])]


class Desk:
    """A dev node, and the programs of OpenSSH that use its ssh name."""

    def __init__(self, laptop: Laptop, context: str) -> None:
        self.laptop, self.context, self.name = laptop, context, context
        self.host = f"yurt-dev-{context}"
        self.config = laptop.home / "config" / "ssh_config"
        self.environment = {**os.environ, **laptop.environment}
        self.data: dict[str, str] = {}

    def up(self, *words: str) -> Desk:
        """Start the dev node, or find it."""
        argv = [YURT, "--context", self.context, "--json", "dev", "up", self.name, "--time", "20m", *words]
        done = subprocess.run(
            argv, capture_output=True, env=self.environment, cwd=self.laptop.project, check=False, timeout=120
        )
        assert done.returncode == 0, done
        self.data = json.loads(done.stdout)["data"]
        return self

    def run(self, program: str, *words: str, **more: object) -> subprocess.CompletedProcess[bytes]:
        argv = [program, "-F", str(self.config), *words]
        return subprocess.run(  # type: ignore[call-overload, no-any-return]
            argv, capture_output=True, env=self.environment, check=False, timeout=60, **more
        )

    def ssh(self, *words: str, **more: object) -> subprocess.CompletedProcess[bytes]:
        return self.run("ssh", self.host, *words, **more)

    def close_masters(self) -> None:
        """Close the connections to clusters that yurt shares between its commands."""
        for each in self.laptop.runtime.rglob("*"):
            if each.is_socket():
                subprocess.run(["ssh", "-S", str(each), "-O", "exit", "x"], capture_output=True, check=False)


@pytest.fixture(scope="module")
def desks(shared_laptop: Laptop) -> Iterator[dict[str, Desk]]:
    """A dev node in each context. They start at the same time."""
    shared_laptop.environment["HOME"] = str(shared_laptop.home)  # a local workspace is in the home folder
    allow_sshd(shared_laptop)
    made = {context: Desk(shared_laptop, context) for context in CONTEXTS}
    with ThreadPoolExecutor() as pool:
        list(pool.map(Desk.up, made.values()))
        yield made
    shared_laptop("cancel", *(each.data["run"] for each in made.values()))


def allow_sshd(laptop: Laptop) -> None:
    """Allow an sshd inside jobs of beta, whose nodes accept no ssh."""
    file = laptop.home / "config" / "contexts.yaml"
    text = file.read_text()
    file.write_text(text.replace("  beta:\n", "  beta:\n    dev_sshd: true\n"))
    assert file.read_text() != text


@pytest.fixture(params=CONTEXTS)
def desk(request: pytest.FixtureRequest, desks: dict[str, Desk]) -> Desk:
    return desks[request.param]


@pytest.fixture(params=[each for each in CONTEXTS if each != "local"])
def clusters_desk(request: pytest.FixtureRequest, desks: dict[str, Desk]) -> Desk:
    return desks[request.param]


def test_a_command_has_the_environment_of_the_job(desk: Desk) -> None:
    done = desk.ssh('echo "$SLURM_JOB_ID $YURT_WORKSPACE $SLURM_TMPDIR"; cat; exit 7', input=b"in\0put")
    job = "" if desk.context == "local" else desk.data["job"]
    assert done.returncode == 7, done
    first, rest = done.stdout.split(b"\n", 1)
    assert first.decode().startswith(f"{job} {desk.data['workspace']} ") and rest == b"in\0put"


def test_files_arrive_bit_for_bit(desk: Desk, tmp_path: Path) -> None:
    content = os.urandom(1_000_000)
    (tmp_path / "sent").write_bytes(content)
    there = f"{desk.host}:{desk.data['workspace']}/copy"
    assert desk.run("scp", "-q", str(tmp_path / "sent"), there).returncode == 0
    argv = ["rsync", "-e", f"ssh -F '{desk.config}'", there, str(tmp_path / "rsync")]
    assert subprocess.run(argv, env=desk.environment, check=False, timeout=60).returncode == 0
    assert (tmp_path / "rsync").read_bytes() == content


@pytest.mark.slow
def test_other_ways_to_copy(desk: Desk, tmp_path: Path) -> None:
    content = os.urandom(100_000)
    there = f"{desk.data['workspace']}/other"
    assert desk.ssh(f"cat > {there}", input=content).returncode == 0
    assert desk.run("scp", "-q", "-O", f"{desk.host}:{there}", str(tmp_path / "back")).returncode == 0
    batch = f"get {there} {tmp_path / 'sftp'}\n".encode()
    assert desk.run("sftp", "-q", "-b", "-", desk.host, input=batch).returncode == 0
    assert all((tmp_path / name).read_bytes() == content for name in ("back", "sftp"))


SERVER = """\
import os, socket
server = socket.create_server(("127.0.0.1", 0))
tables = [open("/proc/net/" + name).read().splitlines()[1:] for name in ("tcp", "tcp6")]
rows = [row.split() for table in tables for row in table]
mine = [row for row in rows if row[3] == "0A" and row[7] == str(os.getuid())]
print(server.getsockname()[1], *(int(row[1].split(":")[1], 16) for row in mine), flush=True)
server.accept()[0].sendall(b"hello")
"""
"""Listens on a port; prints it, and all ports where processes of this user listen on this node."""


def test_a_forwarded_port_and_no_other_listens(desk: Desk, tmp_path: Path) -> None:
    """Neither the holder nor sshd listens on a port of the node: other users could connect to it."""
    shared = str(desk.laptop.runtime / f"forward-{desk.name}")
    argv = ["ssh", "-F", str(desk.config), "-M", "-S", shared, desk.host, f"exec python3 -c {shlex.quote(SERVER)}"]
    local = tmp_path / "forwarded"
    with subprocess.Popen(argv, stdout=subprocess.PIPE, env=desk.environment) as server:
        assert server.stdout is not None
        port, *listening = map(int, server.stdout.readline().split())
        assert port in listening and (desk.context == "local" or listening == [port])
        forward = ["-S", shared, "-O", "forward", "-L", f"{local}:127.0.0.1:{port}", desk.host]
        assert desk.run("ssh", *forward).returncode == 0
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(local))
            assert client.recv(5) == b"hello"
    assert server.returncode == 0


PEEK = """\
ls {folder} || cat {folder}/environment || cat {folder}/ssh/host_key-* || cat {folder}/ssh/authorized_keys
python3 -c 'import socket; socket.socket(socket.AF_UNIX).connect("{folder}/control")'
true
"""


def test_another_user_gets_in_nowhere(clusters_desk: Desk, lab: Lab) -> None:
    desk, ssh = clusters_desk, Ssh(lab)
    node, job = desk.data["node"], desk.data["job"]
    peek = PEEK.format(folder=f"/scratch/alice/.yurt-dev/{desk.name}")
    job_of_bob = f"srun --mem=10 --chdir=/tmp --nodelist={node} sh -c {shlex.quote(peek)}"
    with ThreadPoolExecutor() as pool:
        entering = pool.submit(ssh.ask, desk.context, f"srun --overlap --jobid={job} --nodelist={node} id", user="bob")
        as_bob = pool.submit(desk.run, "ssh", "-l", "bob", desk.host, "id")
        to_node = pool.submit(ssh.ask, desk.context, f"ssh -o BatchMode=yes {node} id", user="bob")
        directly = pool.submit(ssh.ask, f"{desk.context}-{node}", "id", user="bob")
    assert entering.result().code != 0 and "uid=" not in entering.result().out, entering.result()
    assert as_bob.result().returncode == 255 and b"Permission denied" in as_bob.result().stderr, as_bob.result()
    for each in (to_node.result(), directly.result()):
        assert each.code == 255 and "uid=" not in each.out, each
    peeked = ssh.ask(desk.context, job_of_bob, user="bob")  # last: a job of bob's lets him in to the node
    assert peeked.code == 0 and peeked.out == "", peeked
    assert peeked.err.count("ermission denied") == 5, peeked


@pytest.mark.slow("beta", "local")  # one cluster is enough
def test_what_is_gone_is_made_up_for(desk: Desk) -> None:
    """The key of this machine is not authorized any more, and yurt has no connection: ssh still works."""
    done = desk.ssh(f': > "${{YURT_WORKSPACE%/*}}/.yurt-dev/{desk.name}/ssh/authorized_keys"')
    assert done.returncode == 0, done
    desk.close_masters()
    again = desk.ssh("echo here")
    assert (again.returncode, again.stdout) == (0, b"here\n"), again


@pytest.mark.slow
def test_a_wiped_folder(desk: Desk) -> None:
    done = desk.ssh(f'cd "${{YURT_WORKSPACE%/*}}/.yurt-dev/{desk.name}" && rm -r ssh control environment')
    assert done.returncode == 0, done
    eventually(lambda: desk.ssh("true").returncode == 0)


@pytest.mark.slow
def test_a_second_laptop(clusters_desk: Desk, second_laptop: Laptop) -> None:
    """It has another key, and finds the dev node by its backups."""
    allow_sshd(second_laptop)
    other = Desk(second_laptop, clusters_desk.context).up()
    assert other.data["job"] == clusters_desk.data["job"]
    for each in (other, clusters_desk):
        done = each.ssh('echo "$SLURM_JOB_ID"')
        assert done.stdout.decode().strip() == clusters_desk.data["job"], done


@pytest.mark.slow
def test_yurt_dev_ssh_runs_in_the_workspace(desk: Desk) -> None:
    done = desk.laptop("dev", "ssh", desk.name, "--", "sh", "-c", 'pwd; echo "$0"; exit 3', "a  'b")
    assert (done.code, done.out) == (3, f"{desk.data['workspace']}\na  'b\n")


@pytest.mark.slow("beta", "local")  # one cluster is enough
def test_a_terminal_shows_the_time_left(desk: Desk) -> None:
    """At login and in each prompt."""
    argv = ["-F", str(desk.config), "-t", desk.host]
    variables = {**desk.environment, "TERM": "dumb"}
    with pexpect.spawn("ssh", argv, env=variables, timeout=30, encoding="utf-8", dimensions=(40, 250)) as terminal:
        terminal.expect(rf"yurt: \S+ of {desk.context}, 1\d min left, last backup \d+ min ago")
        terminal.expect(r"\[1\dm left\] .*[$#] ")
        terminal.sendline('echo "at=$PWD="')
        terminal.expect(f"at={desk.data['workspace']}=")
        terminal.expect(r"\n\[1\dm left\] ")
        terminal.sendline("exit 4")
        terminal.expect(pexpect.EOF)
        terminal.close()
        assert terminal.exitstatus == 4


@pytest.mark.slow
def test_a_wrong_host_key_is_refused(desk: Desk) -> None:
    file = desk.laptop.home / "config" / "dev" / f"known_hosts-{desk.name}"
    right = file.read_text()
    other = (desk.laptop.home / "config" / "dev" / "id_ed25519.pub").read_text()
    try:
        file.write_text(f"{desk.host} {' '.join(other.split()[:2])}\n")
        done = desk.ssh("true")
        assert done.returncode == 255 and b"IDENTIFICATION HAS CHANGED" in done.stderr
    finally:
        file.write_text(right)
    assert desk.ssh("true").returncode == 0


@pytest.mark.slow
def test_the_name_follows_the_node(desks: dict[str, Desk]) -> None:
    """The next dev node of this name, on any node, is reached under the same name, and its key is known."""
    desk = desks["alpha"]
    before = desk.ssh("uname -n").stdout
    assert desk.laptop("dev", "down", desk.name).code == 0
    assert b"not running" in (ended := desk.ssh("true")).stderr or b"no dev node" in ended.stderr
    other = "n1" if before != b"n1\n" else "n2"
    desk.up("--node", other)
    assert desk.ssh("uname -n").stdout.decode().strip() == other
