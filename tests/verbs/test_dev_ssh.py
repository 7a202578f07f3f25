"""ssh to dev nodes: one name everywhere, the environment of the job, known host keys; nobody else gets in."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pexpect
import pytest

from tests.calls import YURT
from tests.lab.conftest import Ssh
from tests.laptop import Laptop
from yurt.lab import Lab
from yurt.testing.waiting import eventually

pytestmark = pytest.mark.lab

slow = pytest.mark.skipif(not os.environ.get("SLOW_TESTS"), reason="takes more than a minute: SLOW_TESTS=1")

FOLDER = "/scratch/alice/.yurt-dev/{}"


class Desk:
    """A dev node, and the programs of OpenSSH that use its ssh name."""

    def __init__(self, laptop: Laptop, context: str) -> None:
        self.laptop, self.context, self.name = laptop, context, context
        self.host = f"yurt-dev-{context}"
        self.config = laptop.home / "config" / "ssh_config"
        self.environment = {**os.environ, **laptop.environment}
        self.data = self.up()

    def up(self, *words: str) -> dict[str, str]:
        """Start the dev node and return the data of `yurt dev up`."""
        argv = [YURT, "--context", self.context, "--json", "dev", "up", self.name, "--time", "20m", *words]
        done = subprocess.run(
            argv, capture_output=True, env=self.environment, cwd=self.laptop.project, check=False, timeout=120
        )
        assert done.returncode == 0, done
        data: dict[str, str] = json.loads(done.stdout)["data"]
        return data

    def run(self, program: str, *words: str, **more: object) -> subprocess.CompletedProcess[bytes]:
        argv = [program, "-F", str(self.config), *words]
        return subprocess.run(  # type: ignore[call-overload, no-any-return]
            argv, capture_output=True, env=self.environment, check=False, timeout=60, **more
        )

    def ssh(self, *words: str, **more: object) -> subprocess.CompletedProcess[bytes]:
        return self.run("ssh", self.host, *words, **more)


@pytest.fixture(scope="module", params=[pytest.param("local", marks=slow), "alpha", "beta"])
def desk(request: pytest.FixtureRequest, shared_laptop: Laptop) -> Iterator[Desk]:
    shared_laptop.environment["HOME"] = str(shared_laptop.home)  # a local workspace is in the home folder
    if request.param == "beta":
        file = shared_laptop.home / "config" / "contexts.yaml"
        text = file.read_text()
        file.write_text(text.replace("  beta:\n", "  beta:\n    dev_sshd: true\n"))
        assert file.read_text() != text
    made = Desk(shared_laptop, request.param)
    yield made
    shared_laptop("dev", "down", made.name)


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
    assert desk.run("scp", "-q", "-O", there, str(tmp_path / "back")).returncode == 0
    batch = f"get {desk.data['workspace']}/copy {tmp_path / 'sftp'}\n".encode()
    assert desk.run("sftp", "-q", "-b", "-", desk.host, input=batch).returncode == 0
    argv = ["rsync", "-e", f"ssh -F '{desk.config}'", there, str(tmp_path / "rsync")]
    assert subprocess.run(argv, env=desk.environment, check=False, timeout=60).returncode == 0
    assert all((tmp_path / name).read_bytes() == content for name in ("back", "sftp", "rsync"))


SERVER = """\
import socket
server = socket.create_server(("127.0.0.1", 0))
print(server.getsockname()[1], flush=True)
server.accept()[0].sendall(b"hello")
"""


def test_a_forwarded_port(desk: Desk, tmp_path: Path) -> None:
    argv = ["ssh", "-F", str(desk.config), desk.host, f"exec python3 -c '{SERVER}'"]
    local = tmp_path / "forwarded"
    with subprocess.Popen(argv, stdout=subprocess.PIPE, env=desk.environment) as server:
        assert server.stdout is not None
        port = int(server.stdout.readline())
        forward = ["ssh", "-F", str(desk.config), "-N", "-L", f"{local}:127.0.0.1:{port}", desk.host]
        with subprocess.Popen(forward, env=desk.environment) as tunnel:
            eventually(local.exists)
            with socket.socket(socket.AF_UNIX) as client:
                client.connect(str(local))
                assert client.recv(5) == b"hello"
            tunnel.terminate()


@slow
def test_yurt_dev_ssh_runs_in_the_workspace(desk: Desk) -> None:
    done = desk.laptop("dev", "ssh", desk.name, "--", "sh", "-c", 'pwd; echo "$0"; exit 3', "a  'b")
    assert (done.code, done.out) == (3, f"{desk.data['workspace']}\na  'b\n")


@slow
def test_a_terminal_shows_the_time_left(desk: Desk) -> None:
    argv = ["-F", str(desk.config), "-t", desk.host]
    variables = {**desk.environment, "TERM": "dumb"}
    with pexpect.spawn("ssh", argv, env=variables, timeout=30, encoding="utf-8") as terminal:
        terminal.expect(rf"yurt: \S+ of {desk.context}(, \d+ min left)?, last backup \d+ min ago")
        terminal.sendline('echo "at=$PWD="')
        terminal.expect(f"at={desk.data['workspace']}=")
        terminal.sendline("exit 4")
        terminal.expect(pexpect.EOF)
        terminal.close()
        assert terminal.exitstatus == 4


@slow
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


def test_another_user_gets_in_nowhere(desk: Desk, lab: Lab) -> None:
    if desk.context == "local":
        pytest.skip("nobody else has an account here")
    ssh = Ssh(lab)
    node, job, folder = desk.data["node"], desk.data["job"], FOLDER.format(desk.name)
    entered = ssh.ask(desk.context, f"srun --overlap --jobid={job} --nodelist={node} id", user="bob")
    assert entered.code != 0 and "uid=" not in entered.out
    assert desk.run("ssh", "-l", "bob", desk.host, "id").returncode == 255
    look = f"ls {folder}; cat {folder}/ssh/*key*; cat {folder}/environment; ls -l {folder}/control; true"
    peek = ssh.ask(desk.context, f"cd /tmp; srun --mem=10 --chdir=/tmp --nodelist={node} sh -c '{look}'", user="bob")
    assert peek.code == 0 and peek.out == "", peek
    assert peek.err.count("Permission denied") == 4, peek
    listening = desk.ssh("pgrep -u alice -x sshd | while read -r pid; do ls -l /proc/$pid/fd; done; cat /proc/net/tcp*")
    ours = set(re.findall(r"socket:\[(\d+)\]", listening.stdout.decode()))
    rows = [row.split() for row in listening.stdout.decode().splitlines()]
    assert not [row for row in rows if len(row) > 9 and row[3] == "0A" and row[9] in ours]


@slow
def test_the_name_follows_the_node(desk: Desk) -> None:
    """The next dev node of this name, on any node, is reached under the same name, and its key is known."""
    if desk.context != "alpha":
        pytest.skip("one cluster is enough")
    before = desk.ssh("uname -n").stdout
    assert desk.laptop("dev", "down", desk.name).code == 0
    assert b"not running" in (ended := desk.ssh("true")).stderr or b"no dev node" in ended.stderr
    other = "n1" if before != b"n1\n" else "n2"
    desk.data = desk.up("--node", other)
    assert desk.ssh("uname -n").stdout.decode().strip() == other
