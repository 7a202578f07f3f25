"""Each fault affects the real component and can be undone."""

from __future__ import annotations

import json
import secrets
import select
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab.conftest import Ssh
from yurt.errors import NotFoundError, UserError
from yurt.lab import Lab
from yurt.lab.cluster import inside
from yurt.lab.manage import status_of
from yurt.lab.relay import Rules
from yurt.testing.waiting import eventually

pytestmark = pytest.mark.lab


@pytest.fixture
def restored_links(lab: Lab) -> Iterator[None]:
    """Undo all faults of links after a test."""
    yield
    for target in ("alpha", "beta", "beta:login2"):
        lab.faults.heal(target)
    lab.faults.unlink()


@pytest.mark.usefixtures("restored_links")
def test_cut_and_heal(lab: Lab, ssh: Ssh) -> None:
    lab.faults.cut("alpha")
    assert ssh.ask("alpha", "true").code == 255
    assert ssh.ask("beta", "true").code == 0, "the other cluster is not affected"
    lab.faults.heal("alpha")
    assert ssh("alpha", "hostname") == "login"
    assert ssh("alpha", "ip route show default").startswith("default via ")


@pytest.mark.usefixtures("restored_links")
def test_a_healed_link_can_be_used_at_once(lab: Lab) -> None:
    """The kernel answers new connections with `No route to host` if it was searching for the host in vain."""
    login = next(host.outside for host in status_of(lab).clusters[0].hosts if host.role == "login")
    lab.faults.cut("alpha")
    with socket.socket() as searching:
        searching.setblocking(False)
        searching.connect_ex((login, 22))
        known = ["ip", "-s", "neighbour", "show", "to", login]
        eventually(lambda: "probes 6" in subprocess.run(known, capture_output=True, text=True, check=True).stdout)
        lab.faults.heal("alpha")
        socket.create_connection((login, 22), timeout=60).close()


@pytest.mark.usefixtures("restored_links")
def test_cut_link_drops_packets_and_an_open_session_survives(lab: Lab, ssh: Ssh) -> None:
    path = f"/tmp/cut-{secrets.token_hex(4)}"
    outside = Path(f"/proc/{lab.cluster('alpha').pid('login')}/root{path}")
    command = f"echo one; until [ -e {path}.go ]; do sleep 0.05; done; echo two; touch {path}.printed"
    argv = ["ssh", "-F", ssh.config, "-o", "BatchMode=yes", "alpha", command]
    session = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    assert session.stdout is not None
    assert session.stdout.readline() == "one\n"
    lab.faults.cut("alpha")
    outside.with_suffix(".go").touch()
    eventually(outside.with_suffix(".printed").exists)
    assert select.select([session.stdout], [], [], 1)[0] == [], "the cut link passed data"
    assert session.poll() is None
    lab.faults.heal("alpha")
    assert session.communicate(timeout=120)[0] == "two\n" and session.returncode == 0


@pytest.mark.usefixtures("restored_links")
def test_cut_of_one_login_host_does_not_affect_the_other(lab: Lab, ssh: Ssh) -> None:
    lab.faults.cut("beta:login2")
    assert ssh.ask("beta-login2", "true").code == 255
    assert ssh.ask("beta", "true").code == 0


def test_killed_node_loses_its_job_and_comes_back(lab: Lab, ssh: Ssh) -> None:
    ctl = lab.cluster("beta").pid("ctl")

    def failed() -> bool:
        if "NODE_FAIL" in ssh("beta", f"scontrol show job {job}"):
            return True
        # Nodes report their jobs when they register; a reconfigure makes them register.
        subprocess.run(inside(ctl, ["scontrol", "reconfigure"]), capture_output=True, check=True)
        return False

    # Slurm treats a job as still starting until it is older than the sum of these plus five seconds.
    lab.configure("beta", {"BatchStartTimeout": "1", "MessageTimeout": "5"})
    try:
        job = ssh.submit("beta", "sleep 300", "-w n2 -o /dev/null")
        eventually(lambda: ssh("beta", f"squeue -h -j {job} -o %M").splitlines()[-1] >= "0:11", pause=0.5)
        lab.faults.kill_node("beta:n2")
        lab.faults.kill_node("beta:n2")
        assert "n2" not in lab.cluster("beta").pids() and "n1" in lab.cluster("beta").pids()
        lab.faults.start_node("beta:n2")
        eventually(failed, pause=2)
    finally:
        lab.configure("beta", {"BatchStartTimeout": "", "MessageTimeout": ""})
        lab.faults.start_node("beta:n2")
    assert ssh("beta", "cd $SCRATCH && srun -w n2 hostname").splitlines()[-1] == "n2"


def test_start_of_one_node_leaves_another_off(lab: Lab) -> None:
    for node in ("alpha:n1", "alpha:n2"):
        lab.faults.kill_node(node)
    try:
        lab.faults.start_node("alpha:n1")
        assert "n1" in lab.cluster("alpha").pids() and "n2" not in lab.cluster("alpha").pids()
    finally:
        lab.faults.start_node("alpha:n2")


@pytest.mark.parametrize("way", ["stop", "kill"])
def test_controller_gone_and_back(lab: Lab, ssh: Ssh, way: str) -> None:
    {"stop": lab.faults.stop_ctld, "kill": lab.faults.kill_ctld}[way]("beta")
    try:
        assert ssh.ask("beta", "timeout 2 sinfo").code == 124
        broken = next(host for host in status_of(lab).clusters[1].hosts if host.name == "ctl")
        assert broken.missing == ["slurmctld"]
    finally:
        lab.faults.start_ctld("beta")
    eventually(lambda: ssh("beta", "sinfo -h -o %T").splitlines()[-1] == "idle")


def test_accounting_daemon_gone_and_back(lab: Lab, ssh: Ssh) -> None:
    lab.faults.stop_dbd("alpha")
    try:
        assert "Connection refused" in ssh.ask("alpha", "sacct").err
    finally:
        lab.faults.start_dbd("alpha")
    assert ssh.ask("alpha", "sacct -n").code == 0


@pytest.mark.parametrize(
    ("disk", "path"),
    [("scratch", "/lustre/scratch/alice"), ("home", "/home/alice"), ("project", "/lustre/project/alice"), ("n1", "")],
)
def test_full_disk(lab: Lab, ssh: Ssh, disk: str, path: str) -> None:
    write = (
        f"head -c 100000 /dev/zero > {path}/more" if path else "srun -w n1 sh -c 'head -c 9999 /dev/zero > /scratch/m'"
    )
    try:
        lab.faults.full(f"alpha:{disk}")
        lab.faults.full(f"alpha:{disk}")
        answer = ssh.ask("alpha", write)
    finally:
        lab.faults.free(f"alpha:{disk}")
    assert answer.code != 0 and "No space left on device" in answer.err
    assert ssh.ask("alpha", write).code == 0


@pytest.mark.usefixtures("restored_links")
def test_delay_is_felt(lab: Lab, ssh: Ssh) -> None:
    def seconds() -> float:
        started = time.monotonic()
        ssh("alpha", "true")
        return time.monotonic() - started

    lab.faults.delay("alpha", Rules(delay_ms=250))
    assert seconds() > 6 * 0.25, "ssh needs more than three round trips"
    lab.faults.heal("alpha")
    eventually(lambda: seconds() < 6 * 0.25)


@pytest.mark.usefixtures("restored_links")
def test_connection_is_cut_at_the_exact_byte(lab: Lab, ssh: Ssh) -> None:
    log = lab.faults.rules_file("alpha").with_suffix(".log")
    log.unlink(missing_ok=True)
    for cut_at, direction in ((0, "up"), (1, "up"), (1500, "up"), (777, "down")):
        lab.faults.delay("alpha", Rules(cut_at=cut_at, direction=direction, connections=1))
        assert ssh.ask("alpha", "true").code == 255
        assert ssh.ask("alpha", "true").code == 0, "more than one connection was cut"
        eventually(lambda: any(json.loads(line)["cut"] for line in log.read_text().splitlines()))
        cut = next(row for row in map(json.loads, log.read_text().splitlines()) if row["cut"])
        assert cut[direction] == cut_at
        log.unlink()


@pytest.mark.usefixtures("restored_links")
def test_stalled_connection_passes_nothing(lab: Lab, ssh: Ssh) -> None:
    lab.faults.delay("beta", Rules(cut_at=1200, ending="stall"))
    argv = ["ssh", "-v", "-F", ssh.config, "-o", "BatchMode=yes", "beta", "true"]
    session = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        assert session.stderr is not None
        lines = iter(session.stderr.readline, "")
        assert any("expecting SSH2_MSG_KEX" in line for line in lines), "more than 1200 bytes were sent"
        with pytest.raises(subprocess.TimeoutExpired):
            session.wait(1)
    finally:
        session.kill()
        session.communicate()


@pytest.mark.usefixtures("restored_links")
def test_link_between_the_clusters(lab: Lab, ssh: Ssh) -> None:
    to_beta, to_alpha = "ssh -o BatchMode=yes beta hostname", "ssh -o BatchMode=yes alpha hostname"
    assert ssh.ask("alpha", to_beta.replace("beta", "-o ConnectTimeout=3 beta")).code == 255
    lab.faults.link()
    assert ssh("alpha", to_beta).splitlines()[-1] == "login1"
    assert ssh("alpha", to_beta.replace("beta", "beta-login2")).splitlines()[-1] == "login2"
    assert ssh("beta", to_alpha).splitlines()[-1] == "login"
    assert ssh.ask("alpha", "srun -w n1 ssh -o BatchMode=yes -o ConnectTimeout=3 10.77.100.2 true").code != 0
    lab.faults.unlink()
    assert ssh.ask("beta", to_alpha).code == 255


@pytest.mark.parametrize("target", ["gamma", "alpha:n9", "beta:ctl2"])
def test_unknown_targets(lab: Lab, target: str) -> None:
    with pytest.raises(NotFoundError):
        lab.faults.kill_node(target)


def test_invalid_targets(lab: Lab) -> None:
    with pytest.raises(UserError, match="is not a login host"):
        lab.faults.cut("alpha:n1")
    with pytest.raises(UserError, match="no accounting daemon"):
        lab.faults.stop_dbd("beta")
    with pytest.raises(NotFoundError, match="disk 'alpha:archive' not found"):
        lab.faults.full("alpha:archive")
