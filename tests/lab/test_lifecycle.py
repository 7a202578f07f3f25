"""Starting and stopping labs, also interrupted and side by side: nothing is left behind, no data is lost."""

from __future__ import annotations

import json
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.calls import YURT, Called, call
from tests.lab.conftest import Ssh
from tests.wheels import tiny
from yurt.lab import Lab, cgroups, processes
from yurt.lab.instance import Instance
from yurt.lab.topology import ALPHA
from yurt.testing.waiting import eventually

pytestmark = pytest.mark.lab


class Other:
    """A second lab with its own folders, beside the session's lab."""

    def __init__(self, home: Path) -> None:
        self.environment = {"YURT_CONFIG_HOME": str(home / "config"), "YURT_DATA_HOME": str(home / "da ta, x:y")}
        self.folder = home / "da ta, x:y" / "lab" / "default"
        self.instance = Instance("default", self.folder)
        self.contexts = home / "config" / "contexts.yaml"

    def __call__(self, *arguments: str) -> Called:
        return call("lab", *arguments, environment=self.environment)

    def ssh(self, host: str, command: str) -> subprocess.CompletedProcess[str]:
        argv = ["ssh", "-F", str(self.folder / "client" / "ssh_config"), "-o", "BatchMode=yes", host, command]
        return subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300, check=False)

    def hosts(self) -> dict[str, int]:
        """Map the name of each running host to its first process. Use with one cluster up."""
        return {mark.rpartition("/")[2]: pid for mark, pid in processes.marked(self.instance.mark).items()}

    def links(self) -> set[str]:
        """Return this machine's links to the lab's login hosts."""
        return {name for _index, name in socket.if_nameindex()} & {self.instance.link(index) for index in range(10)}

    def groups(self) -> list[Path]:
        """Return the lab's cgroups."""
        return list(Path("/sys/fs/cgroup").glob(f"*/{self.instance.group}"))


@pytest.fixture
def other(lab: Lab, tmp_path: Path) -> Iterator[Other]:
    found = Other(tmp_path)
    yield found
    assert found("down", "--wipe").code == 0


def namespaces(pids: Iterable[int | str]) -> set[str]:
    """Return the namespaces of processes."""
    found = set()
    for pid in pids:
        for kind in ("net", "mnt", "pid", "uts", "ipc", "cgroup"):
            with suppress(OSError):
                found.add(os.readlink(f"/proc/{pid}/ns/{kind}"))
    return found


def traces(other: Other) -> dict[str, set[str]]:
    """Return everything that a lab could leave behind on this machine, without that of labs beside it."""
    loops = subprocess.run(["losetup", "-n", "-O", "BACK-FILE"], capture_output=True, text=True, check=True).stdout
    return {
        "hosts": set(processes.marked(other.instance.mark)),
        "links": other.links(),
        "groups": {str(group) for group in other.groups()},
        "disks": {file for file in loops.splitlines() if str(other.folder) in file},
    }


def mounted(own: Path) -> list[str]:
    """Return what is mounted on this machine, without what other tests mount in folders of their own."""
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    others = [line for line in lines if f" {tempfile.gettempdir()}/" in line and f" {own}" not in line]
    return [line for line in lines if line not in others]


@pytest.mark.alone
def test_down_leaves_nothing(other: Other, tmp_path: Path) -> None:
    mounts, before = mounted(tmp_path), namespaces(["self"])
    started = other("up", "-v")
    assert started.code == 0, started.err
    assert "alpha ready in " in started.out and "% of a core" in started.out
    during, own = traces(other), namespaces(processes.marked(other.instance.mark).values()) - before
    assert all(during.values()) and own, f"traces() does not see the lab: {during}"
    # Not those that start later: the kernel gives them the numbers of namespaces that have ended.
    inside = [each.name for each in Path("/proc").glob("[0-9]*") if namespaces([each.name]) & own]
    assert mounted(tmp_path) == mounts, "a running lab changes the user's mounts"
    assert other("down").code == 0
    assert traces(other) == {kind: set() for kind in during}
    assert not namespaces(inside) & own
    assert other.folder.exists()
    assert other("down", "--wipe").code == 0
    assert not other.folder.exists()
    assert "alpha" not in other.contexts.read_text()


@pytest.fixture
def strict_umask() -> Iterator[None]:
    before = os.umask(0o077)
    yield
    os.umask(before)


@pytest.mark.usefixtures("strict_umask")  # a common umask, which must not affect the lab's hosts
def test_restart_keeps_disks_jobs_accounting_and_index(other: Other, tmp_path: Path) -> None:
    never = other("index", str(tiny(tmp_path)))
    assert never.code == 5 and "never started" in never.err
    assert other("up", "alpha").code == 0
    assert other("index", str(tiny(tmp_path))).code == 0
    assert other.ssh("alpha", "echo kept > ~/note; srun true").returncode == 0
    job = other.ssh("alpha", "sbatch --parsable --hold --wrap true").stdout.strip()
    assert "package-index" in other("status").out
    assert other("down").code == 0
    assert "package-index" not in other("status").out
    assert other("up", "alpha").code == 0
    get = f"python3 -c 'import urllib.request as u; print(u.urlopen(\"{ALPHA.index_url}tiny/\").read())'"
    assert "tiny-1.0" in other.ssh("alpha", get).stdout
    assert other.ssh("alpha", "cat ~/note").stdout == "kept\n"
    assert other.ssh("alpha", f"squeue -h -j {job} -o %T").stdout == "PENDING\n"
    eventually(lambda: "COMPLETED" in other.ssh("alpha", "sacct -n").stdout)


def test_up_again_changes_nothing(lab: Lab, ssh: Ssh) -> None:
    before = lab.pids()
    job = ssh.submit("alpha", "sleep 300", "-o /dev/null")
    eventually(lambda: ssh.state("alpha", job) == "RUNNING")
    events: list[str] = []
    lab.up(watch=lambda event: events.append(event.text))
    assert lab.pids() == before
    assert ssh.state("alpha", job) == "RUNNING"
    first, second = [text for text in events if ": ready" in text]
    names = {first.partition(":")[0], second.partition(":")[0]}
    assert names == {"alpha", "beta"} and second.endswith(": ready")
    assert first.endswith(f": ready; waiting for Slurm on {second.partition(':')[0]}"), "what it still waits for"


@pytest.mark.slow
def test_one_cluster_alone(other: Other) -> None:
    assert other("up", "beta").code == 0
    names = {host["name"]: host["up"] for host in other("status", "--json").json["data"]["clusters"][0]["hosts"]}
    assert not any(names.values()), "alpha was started"
    assert other.ssh("beta", "sinfo -h -o %T").stdout.splitlines()[-1] == "idle"
    assert "beta:" in other.contexts.read_text() and "alpha:" not in other.contexts.read_text()
    assert str(other.folder / "client" / "ssh_config") in other("status").out
    assert other("down", "--wipe").out == "beta stopped and wiped\n", "alpha was never started"
    assert other("down", "--wipe").out == "nothing to stop or wipe\n"
    assert "ssh config" not in other("status").out and other("status", "--json").json["data"]["ssh_config"] == ""


def _ready(other: Other, host: str) -> bool:
    pid = other.hosts().get(host)
    return pid is not None and Path(f"/proc/{pid}/root/run/lab/ready").exists()


POINTS: dict[str, Callable[[Other], object]] = {
    "state saved": lambda other: (other.folder / "lab.json").exists(),
    "files": lambda other: (other.folder / "beta" / "layers" / "node").exists(),
    "fabric started": lambda other: (other.folder / "beta" / "hosts" / "fabric.boot.log").exists(),
    "first host": lambda other: "ctl" in other.hosts(),
    "last host": lambda other: {"ctl", "login1", "login2", "n1", "n2"} <= other.hosts().keys(),
    "link": lambda other: other.links(),
    "host ready": lambda other: _ready(other, "login1"),
}
"""Stages of `lab up`, in order."""


@pytest.mark.parametrize(
    ("point", "then"),
    [
        ("state saved", "up"),
        ("files", "down"),
        ("fabric started", "up"),
        ("first host", "down"),
        ("last host", "up"),
        ("link", "down"),
        ("host ready", "up"),
    ],
)
@pytest.mark.slow("files", "fabric started", "first host", "link", "host ready")
def test_killed_while_starting(other: Other, point: str, then: str) -> None:
    """After SIGKILL at any stage of `up`, the next `up` continues and `down` cleans up."""
    first = subprocess.Popen(
        [YURT, "lab", "up", "beta"],
        env={**os.environ, **other.environment},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    reached = POINTS[point]
    eventually(lambda: reached(other) or first.poll() is not None, pause=0.005)
    first.kill()
    assert first.wait() == -signal.SIGKILL, "it finished before it was killed"
    if then == "down":
        assert other("down").code == 0
        eventually(lambda: not other.hosts())
        assert other.groups() == [] and other.links() == set()
    again = other("up", "beta")
    assert again.code == 0, again.err
    assert other.ssh("beta", "cd $SCRATCH && srun hostname").returncode == 0


@pytest.mark.slow
def test_addresses_taken_since_a_killed_start(other: Other) -> None:
    """A lab that was killed before it had links chooses new addresses if its own are in use now."""
    for _try in range(10):
        environment = {**os.environ, **other.environment}
        first = subprocess.Popen([YURT, "lab", "up", "beta"], env=environment, stdout=-3, stderr=-3)
        eventually(lambda: POINTS["first host"](other), pause=0.005)
        first.kill()
        first.wait()
        if not other.links():
            break
        assert other("down", "--wipe").code == 0  # killed too late
    assert not other.links()
    block = json.loads((other.folder / "lab.json").read_text())["block"]
    taken = ["ip", "link", "add", "ytaken0", "type", "veth", "peer", "name", "ytaken1"]
    subprocess.run(taken, check=True)
    try:
        subprocess.run(["ip", "addr", "add", block.replace(".0/24", ".1/30"), "dev", "ytaken0"], check=True)
        subprocess.run(["ip", "link", "set", "ytaken0", "up"], check=True)
        again = other("up", "beta")
        assert again.code == 0, again.err
        assert json.loads((other.folder / "lab.json").read_text())["block"] != block
        assert other.ssh("beta", "cd $SCRATCH && srun hostname").returncode == 0
    finally:
        subprocess.run(["ip", "link", "del", "ytaken0"], check=True)


@pytest.mark.alone  # other labs would find no free addresses
def test_a_wider_route_does_not_stop_a_running_lab(lab: Lab) -> None:
    """A route such as that of a VPN opened later: another `up` leaves everything running."""
    before = lab.pids()
    subprocess.run(["ip", "route", "add", "unreachable", "10.64.0.0/10", "metric", "4999"], check=True)
    try:
        lab.up()
    finally:
        subprocess.run(["ip", "route", "del", "unreachable", "10.64.0.0/10", "metric", "4999"], check=True)
    assert lab.pids() == before


@pytest.mark.slow
def test_hosts_killed_from_outside_are_started_again(other: Other) -> None:
    assert other("up", "beta").code == 0
    marks = other.hosts()
    for name in ("ctl", "n1"):
        os.kill(marks[name], signal.SIGKILL)
    assert other("up", "beta").code == 0
    os.kill(marks["fabric"], signal.SIGKILL)
    assert other("up", "beta").code == 0
    assert other.ssh("beta", "cd $SCRATCH && srun -N2 hostname").returncode == 0


def test_two_concurrent_starts_start_it_once(other: Other) -> None:
    argv = [YURT, "lab", "up", "beta"]
    environment = {**os.environ, **other.environment}
    both = [subprocess.Popen(argv, env=environment, stdout=-1, stderr=-1, text=True) for _ in range(2)]
    answers = [(each.communicate(timeout=300), each.returncode) for each in both]
    assert sorted(code for _text, code in answers) == [0, 4]
    assert any("another yurt process" in text[1] for text, code in answers if code == 4)


def test_contexts_of_the_user_stay(other: Other) -> None:
    other.contexts.parent.mkdir()
    other.contexts.write_text("# mine\ncontexts:\n  beta:  # not the lab's\n    type: slurm\n    slurm_url: me@big\n")
    refused = other("up", "beta")
    assert refused.code == 2 and "does not belong to this lab" in refused.err and "--instance" in refused.err
    assert not other.folder.exists()
    mine = other.contexts.read_text()
    assert other("up", "beta", "--instance", "class2").code == 0
    written = other.contexts.read_text()
    assert written.startswith(mine) and "class2-beta:" in written
    assert other("down", "--wipe", "--instance", "class2").code == 0
    assert other.contexts.read_text() == mine


def test_down_finds_hosts_whose_state_folder_is_gone(other: Other, tmp_path: Path) -> None:
    assert other("up", "beta").code == 0
    assert other.hosts().keys() == {"fabric", "ctl", "login1", "login2", "n1", "n2"}
    other.folder.rename(tmp_path / "moved")
    assert other("down").code == 0
    assert other.hosts() == {} and other.links() == set() and other.groups() == []


def test_wipe_deletes_the_facts_of_its_contexts(other: Other) -> None:
    assert other("up", "beta").code == 0
    assert call("context", "probe", "beta", environment=other.environment).code == 0
    facts = other.contexts.parent / "facts" / "beta.json"
    assert facts.exists()
    call("login", "beta", "--close", environment=other.environment)
    assert other("down", "--wipe").code == 0
    assert not facts.exists()


def test_status_shows_what_is_broken(other: Other) -> None:
    assert other("up", "beta").code == 0
    assert other("fault", "kill-node", "beta:n2").code == 0
    assert other("fault", "stop-ctld", "beta").code == 0
    text = other("status").out
    rows = {line.split()[0]: line for line in text.splitlines() if line.startswith("beta:")}
    assert " off" in rows["beta:n2"] and "slurmctld is not running" in rows["beta:ctl"]
    assert "off" not in rows["beta:n1"] and "slurmd" in rows["beta:n1"]


@pytest.mark.slow
def test_without_control_groups(other: Other) -> None:
    """Without cgroups a node still accepts only users with a job, and Slurm itself enforces memory limits."""
    started = other("up", "alpha", "--limits", "none")
    assert started.code == 0 and "no usable control groups" in started.err
    assert "no active jobs" in other.ssh("alpha-n1", "true").stderr
    assert other.ssh("alpha", "sbatch -w n1 -o /dev/null --wrap 'sleep 300'").returncode == 0
    eventually(lambda: other.ssh("alpha-n1", "hostname").stdout == "n1\n")
    greedy = other.ssh("alpha", "srun --mem=50 python3 -c 'import time; x = bytearray(300 << 20); time.sleep(300)'")
    assert greedy.returncode != 0 and "exceeded memory limit" in greedy.stderr


@pytest.mark.slow
def test_falls_back_if_cgroup_v2_does_not_work(lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Simulates a machine with cgroup v2 only, which Slurm cannot use (here because it is not mounted)."""
    monkeypatch.setenv("YURT_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("YURT_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setattr(cgroups, "detect", lambda: "v2")
    monkeypatch.setattr(cgroups, "usable", lambda _limits, _group: True)
    progress: list[str] = []
    second = Lab()
    try:
        assert second.up(["alpha"], watch=lambda event: progress.append(event.text)).limits == "none"
        assert any("did not start with cgroup v2" in text for text in progress)
    finally:
        second.down(wipe=True)


def test_unsupported_limits(other: Other) -> None:
    answer = other("up", "alpha", "--limits", "v2")
    assert answer.code == 2 and "no usable cgroup v2" in answer.err


def test_under_sudo_the_files_belong_to_the_calling_user(lab: Lab) -> None:
    """After `sudo yurt lab up`, the user needs no sudo for anything else."""
    person = pwd.getpwnam("nobody")
    home = Path(tempfile.mkdtemp(prefix="yurt-sudo-"))
    os.chown(home, person.pw_uid, person.pw_gid)
    other = Other(home)
    other.environment |= {"SUDO_UID": str(person.pw_uid), "SUDO_GID": str(person.pw_gid)}
    try:
        assert other("up", "beta").code == 0
        client = other.folder / "client"
        for path in (other.contexts, other.contexts.parent, client, client / "alice", client / "ssh_config"):
            assert path.stat().st_uid == person.pw_uid, path
            assert path.stat().st_mode & 0o077 == 0, path
        argv = ["setpriv", f"--reuid={person.pw_uid}", f"--regid={person.pw_gid}", "--clear-groups"]
        argv += ["ssh", "-F", str(client / "ssh_config"), "-o", "BatchMode=yes", "beta", "hostname"]
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        assert done.stdout.splitlines()[-1] == "login1", done.stderr
    finally:
        assert other("down", "--wipe").code == 0
        shutil.rmtree(home)
