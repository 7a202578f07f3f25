"""beta: no accounting, no ssh to nodes, no route out, and a job submit plugin with its own rules."""

from __future__ import annotations

import re
import secrets
import subprocess
from pathlib import Path

import pytest

from tests.lab.conftest import Ssh
from yurt.lab import Lab
from yurt.testing.waiting import eventually

pytestmark = pytest.mark.lab


def test_job_runs_and_slurm_soon_purges_it(lab: Lab, ssh: Ssh) -> None:
    assert re.search(r"^MinJobAge += 10 sec$", ssh("beta", "scontrol show config"), re.MULTILINE)
    lab.configure("beta", {"MinJobAge": "2"})
    try:
        job = ssh.submit("beta", "hostname", "--wait -o host.txt")
        assert ssh("beta", "cat /lustre/scratch/alice/host.txt").splitlines()[-1] in ("n1", "n2")
        eventually(lambda: "Invalid job id" in ssh.ask("beta", f"scontrol show job {job}").err, pause=1)
    finally:
        lab.configure("beta", {"MinJobAge": ""})


def test_no_accounting(ssh: Ssh) -> None:
    answer = ssh.ask("beta", "sacct")
    assert answer.code != 0 and "accounting storage is disabled" in answer.err


def test_submission_from_home_is_refused(ssh: Ssh) -> None:
    refused = ssh.ask("beta", "cd ~ && sbatch --wrap true")
    assert refused.code != 0 and "/home" in refused.err


def test_requeue_is_forbidden(ssh: Ssh) -> None:
    refused = ssh.ask("beta", "cd $SCRATCH && sbatch --requeue --wrap true")
    assert refused.code != 0 and "requeue is not allowed" in refused.err
    job = ssh.submit("beta", "sleep 60", "-o /dev/null")
    eventually(lambda: ssh.state("beta", job) == "RUNNING")
    assert ssh.ask("beta", f"scontrol requeue {job}").code != 0
    assert ssh.ask("beta", f"scontrol update job {job} Requeue=1").code != 0


def test_over_limit_job_stays_pending(ssh: Ssh) -> None:
    job = ssh.submit("beta", "true", "-p short -t 60 -o /dev/null")
    eventually(lambda: ssh("beta", f"squeue -h -j {job} -o '%T %r'").splitlines()[-1] == "PENDING PartitionTimeLimit")


def test_array_larger_than_the_limit_is_refused(ssh: Ssh) -> None:
    assert "MaxArraySize            = 101" in ssh("beta", "scontrol show config")
    assert ssh.ask("beta", "cd $SCRATCH && sbatch --array=0-101 --wrap true").code != 0


def test_banner_and_noisy_dotfiles(ssh: Ssh) -> None:
    answer = ssh.ask("beta", "echo answer")
    assert answer.err.count("is monitored") == 12
    assert answer.out.splitlines()[0] == "Welcome back! Your quota report:" and answer.out.endswith("answer\n")


def test_two_login_hosts_share_one_home(ssh: Ssh) -> None:
    ssh("beta", "echo one > ~/note")
    assert ssh("beta-login2", "hostname; cat ~/note").splitlines()[-2:] == ["login2", "one"]


def test_no_ssh_to_nodes_and_no_route_out(lab: Lab, ssh: Ssh) -> None:
    job = ssh.submit("beta", "sleep 60", "-w n1 -o /dev/null")
    eventually(lambda: ssh.state("beta", job) == "RUNNING")
    assert "refused" in ssh.ask("beta", "ssh -o BatchMode=yes n1 true").err
    for where in ("", "cd $SCRATCH && srun -w n1 "):
        routes = ssh("beta", where + "ip route")
        assert "10.77.2.0/24 dev eth0" in routes and "default" not in routes


def test_a_master_carries_ten_sessions(ssh: Ssh, tmp_path: Path) -> None:
    mark = f"/tmp/ten-{secrets.token_hex(4)}"
    through = ["ssh", "-F", ssh.config, "-o", "BatchMode=yes", "-S", str(tmp_path / "m")]
    subprocess.run([*through, "-fNM", "beta"], check=True, capture_output=True, timeout=120)
    try:
        until_closed = [*through, "beta", f"echo > {mark}-$$; cat"]
        sessions = [subprocess.Popen(until_closed, stdin=-1, stdout=-1, stderr=-1) for _ in range(10)]
        eventually(lambda: ssh("beta", f"ls {mark}-* | wc -l").splitlines()[-1] == "10")
        # The master refuses the session; ProxyCommand=false keeps ssh from opening a connection of its own.
        more = subprocess.run(
            [*through, "-o", "ProxyCommand=false", "beta", "true"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        assert more.returncode == 255 and "Session open refused by peer" in more.stderr
        assert all(session.poll() is None for session in sessions)
    finally:
        subprocess.run([*through, "-O", "exit", "beta"], check=True, capture_output=True)
    for session in sessions:
        session.communicate(timeout=120)
