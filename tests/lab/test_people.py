"""Access of the lab's users: ssh keys, a second factor, and isolation between users."""

from __future__ import annotations

import pexpect
import pytest

from tests.lab.conftest import Ssh
from yurt.lab import Lab
from yurt.testing.waiting import eventually

pytestmark = pytest.mark.lab


@pytest.mark.parametrize("host", ["alpha", "beta"])
def test_bob_cannot_read_alices_files(ssh: Ssh, host: str) -> None:
    ssh(host, "echo secret > ~/private; echo secret > /lustre/scratch/alice/private")
    for path in ("/home/alice/private", "/lustre/scratch/alice/private", "/home/alice/.ssh/id_ed25519"):
        answer = ssh.ask(host, f"cat {path}", user="bob")
        assert answer.code != 0 and "Permission denied" in answer.err
    assert ssh(host, "id -un", user="bob") == "bob"


def test_a_node_accepts_only_users_with_a_job_on_it(ssh: Ssh) -> None:
    eventually(lambda: "no active jobs on this node" in ssh.ask("alpha-n1", "true").err)
    job = ssh.submit("alpha", "sleep 120", "-w n1 -o /dev/null")
    eventually(lambda: ssh.state("alpha", job) == "RUNNING")
    assert ssh("alpha-n1", "hostname; id -un; cat /proc/self/cgroup").splitlines()[:2] == ["n1", "alice"]
    assert f"job_{job}" in ssh("alpha-n1", "cat /proc/self/cgroup"), "the session belongs to the job"
    refused = ssh.ask("alpha-n1", "true", user="bob")
    assert refused.code != 0 and "no active jobs on this node" in refused.err
    inside = ssh.ask("alpha", f"srun --overlap --jobid={job} id", user="bob")
    assert inside.code != 0, "bob entered alice's allocation"
    assert ssh.ask("alpha", f"scancel {job}", user="bob").code != 0
    ssh.end_jobs()
    eventually(lambda: ssh.ask("alpha-n1", "true").code != 0)


def test_carol_needs_key_and_code(lab: Lab, ssh: Ssh) -> None:
    assert ssh.ask("alpha", "true", user="carol").code == 255
    code = (lab.instance.client / "carol.code").read_text().strip()
    for typed, expected in (
        ("000000" if code != "000000" else "111111", "Permission denied|assword"),
        (code, "welcome"),
    ):
        child = pexpect.spawn(
            "ssh", ["-F", ssh.config, "-l", "carol", "alpha", "echo welcome"], timeout=120, encoding="utf8"
        )
        child.expect("assword:")
        child.sendline(typed)
        child.expect(expected)
        child.close(force=True)


def test_alices_key_opens_no_other_account(ssh: Ssh) -> None:
    def enter(person: str) -> int:
        return ssh.ask("alpha", f"ssh -o BatchMode=yes {person}@login true").code

    assert enter("alice") == 0
    assert {person: enter(person) for person in ("bob", "carol", "oper", "root")} == dict.fromkeys(
        ("bob", "carol", "oper", "root"), 255
    )


def test_files_of_the_lab_are_private(lab: Lab) -> None:
    folder = lab.instance.folder
    assert folder.stat().st_mode & 0o777 == 0o700
    for name in ("alice", "bob", "carol.code", "ssh_config", "known_hosts"):
        assert (lab.instance.client / name).stat().st_mode & 0o777 == 0o600, name
