"""Secrets on real clusters: the job has the value; no disk, record, log or other user ever does.

The search reads the raw device of every disk of the lab, including deleted data.
"""

from __future__ import annotations

import base64
import os
import re
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from tests.lab.conftest import Ssh
from tests.laptop import Laptop
from yurt.lab import Lab
from yurt.lab.cluster import inside
from yurt.model import secrets
from yurt.testing.runs import PATIENT as UNTIL_GO
from yurt.testing.waiting import eventually

pytestmark = pytest.mark.lab

PROVES = 'printf %s "$CANARY" | sha256sum >> "$YURT_RUN_DIR/proof"'
PATIENT = f"{PROVES}; {UNTIL_GO}"

EVERYTHING = "cat /proc/[0-9]*/cmdline /proc/[0-9]*/environ 2> /dev/null; ps auxeww"


class Search:
    """Searches a lab and a laptop for a value, plain and encoded as hex and base64."""

    def __init__(self, lab: Lab, laptop: Laptop) -> None:
        self.lab, self.laptop = lab, laptop
        self.began = time.time()

    def forms(self, value: bytes) -> list[bytes]:
        coded = [base64.b64encode(bytes(before) + value)[before + 1 :].rstrip(b"=")[:-2] for before in range(3)]
        return [value, value.hex().encode(), value.hex().upper().encode(), *coded]

    def on_disks(self, value: bytes, cluster: str = "") -> list[str]:
        """Files of the lab or one cluster, and of the laptop, that contain a value; disks of clusters are files too."""
        os.sync()
        forms = self.forms(value)
        places = (self.lab.instance.folder / cluster, self.laptop.home, self.laptop.runtime)
        files = [file for place in places for file in place.rglob("*") if file.is_file() and not file.is_symlink()]
        return [str(file) for file in files if _holds(file, forms)]

    def in_memory(self, value: bytes, cluster: str) -> list[str]:
        """Hosts whose in-memory file systems contain a value in a file that changed since the search was created."""
        deep = "-path '/root/*/*/*' -prune -o"  # belongs to this machine, and is large
        find = f"find /run /tmp /dev/shm /var /etc /root {deep} -type f -newermt @{int(self.began)}"
        grep = f"{find} -print0 | xargs -0r grep -laF -e {value.decode()}"
        return [f"{host}: {said}" for host, said in self._on_all(cluster, grep).items() if said]

    def for_others(self, value: bytes, cluster: str) -> list[str]:
        """Hosts on which `bob` sees a value in the arguments or environment of a process."""
        bob = ["setpriv", "--reuid=61002", "--regid=61002", "--clear-groups", "sh", "-c", EVERYTHING]
        return [host for host, said in self._on_all(cluster, bob).items() if value.decode() in said]

    def for_root(self, value: bytes, cluster: str) -> list[str]:
        return [host for host, said in self._on_all(cluster, EVERYTHING).items() if value.decode() in said]

    def nowhere(self, value: bytes, cluster: str) -> None:
        assert self.on_disks(value, cluster) == []
        assert self.in_memory(value, cluster) == []
        assert self.for_others(value, cluster) == []

    def _on_all(self, cluster: str, argv: str | list[str]) -> dict[str, str]:
        """Output of a command on each host of a cluster."""
        words = ["sh", "-c", argv] if isinstance(argv, str) else argv
        hosts = [host.name for host in self.lab.cluster(cluster).spec.hosts]

        def at(host: str) -> str:
            command = inside(self.lab.cluster(cluster).pid(host), words)
            return subprocess.run(command, capture_output=True, check=False).stdout.decode(errors="replace").strip()

        with ThreadPoolExecutor(len(hosts)) as pool:
            return dict(zip(hosts, pool.map(at, hosts), strict=True))


def _holds(file: Path, forms: list[bytes]) -> bool:
    """Whether a file contains one of these; holes in it are skipped."""
    longest = max(len(form) for form in forms)
    try:
        with file.open("rb", buffering=0) as opened:
            end, at = file.stat().st_size, 0
            while at < end:
                try:
                    at = os.lseek(opened.fileno(), at, os.SEEK_DATA)
                except OSError:
                    return False
                until = os.lseek(opened.fileno(), at, os.SEEK_HOLE)
                before = b""
                while at < until:
                    chunk = os.pread(opened.fileno(), min(1 << 22, until - at), at)
                    if not chunk:
                        break
                    text = before + chunk
                    if any(form in text for form in forms):
                        return True
                    before = chunk[-longest:]
                    at += len(chunk)
    except FileNotFoundError:
        return False
    return False


@pytest.fixture
def ssh(lab: Lab) -> Ssh:
    return Ssh(lab)


@pytest.fixture
def canary(laptop: Laptop) -> bytes:
    """A value that exists only in the environment of the laptop's user."""
    value = b"canary-" + os.urandom(16).hex().encode()
    laptop.environment["CANARY"] = value.decode()
    return value


@pytest.fixture
def search(lab: Lab, laptop: Laptop) -> Search:
    return Search(lab, laptop)


def folder_of(made: dict[str, Any]) -> str:
    folder: str = made["run"]["folder"]
    return folder


def shares(ssh: Ssh, cluster: str, made: dict[str, Any]) -> list[str]:
    return [word for word in ssh(cluster, f"ls {folder_of(made)}").split() if word.startswith("secret.")]


def proofs(ssh: Ssh, cluster: str, made: dict[str, Any]) -> list[str]:
    """What the starts of a run printed about the value, without the login banner of the site."""
    return re.findall(r"\b[0-9a-f]{64}\b", ssh.ask(cluster, f"cat {folder_of(made)}/proof").out)


def proven(ssh: Ssh, cluster: str, made: dict[str, Any], starts: int = 1) -> None:
    """Wait until this many starts of a run have printed about the value."""
    loop = f"until [ $(cat {folder_of(made)}/proof 2> /dev/null | wc -l) -ge {starts} ]; do sleep 0.1; done"
    ssh(cluster, f"sh -c '{loop}'", timeout=120)


def records(ssh: Ssh, cluster: str, job: str) -> str:
    """Everything that Slurm reports about a job."""
    commands = [f"scontrol show job -dd {job}", f"scontrol write batch_script {job} -"]
    if cluster == "alpha":
        commands += [f"sacct {what} -j {job}" for what in ("-B", "--env-vars", "-l")]
    return ssh.ask(cluster, "; ".join(commands)).out


@pytest.mark.parametrize("cluster", ["alpha", "beta"])
def test_the_search_finds_values_on_clusters(search: Search, ssh: Ssh, lab: Lab, cluster: str) -> None:
    """The search finds a deleted file, a variable passed to sbatch, and an argument."""
    planted, handed, argued = (f"planted-{os.urandom(12).hex()}" for _each in range(3))
    ssh(cluster, f"echo {planted} > ~/planted; sync; rm ~/planted")
    assert [Path(file).name for file in search.on_disks(planted.encode())] == ["home.img"]
    ssh(cluster, f"echo {planted} > /tmp/planted")
    assert search.in_memory(planted.encode(), cluster)
    ssh(cluster, "rm /tmp/planted")
    job = ssh(cluster, f"cd /lustre/scratch/alice && X={handed} sbatch --parsable -o /dev/null --wrap 'sleep 600'")
    job = job.split()[-1]
    try:
        eventually(lambda: ssh.state(cluster, job) == "RUNNING")
        assert f"/{cluster}/state/slurmctld/" in " ".join(search.on_disks(handed.encode()))
        if cluster == "alpha":  # accounting records appear some seconds later
            eventually(lambda: "/state/mysql/" in " ".join(search.on_disks(handed.encode(), cluster)), pause=0.5)
        assert search.for_root(handed.encode(), cluster) and not search.for_others(handed.encode(), cluster)
    finally:
        ssh(cluster, f"scancel {job}")
    argv = inside(lab.cluster(cluster).pid("n1"), ["sh", "-c", 'read -r line; : "$0"', argued])
    with subprocess.Popen(argv, stdin=subprocess.PIPE) as process:  # exits at the end of its input
        eventually(lambda: search.for_others(argued.encode(), cluster) == ["n1"])
        process.kill()


def test_the_search_finds_values_on_the_laptop(search: Search, laptop: Laptop) -> None:
    kept = f"planted-{os.urandom(12).hex()}"
    (laptop.home / "data").mkdir()
    (laptop.home / "data" / "planted").write_text(base64.b64encode(f"xx{kept}yy".encode()).decode())
    assert search.on_disks(kept.encode()) == [str(laptop.home / "data" / "planted")]


@pytest.mark.parametrize("cluster", ["alpha", "beta"])
def test_only_the_job_has_it(laptop: Laptop, ssh: Ssh, search: Search, canary: bytes, cluster: str) -> None:
    made = laptop.run(cluster, "--secret", "CANARY", "--hold", "sh", "-c", PATIENT)
    job = made["status"]["job"]
    assert len(shares(ssh, cluster, made)) == 1
    assert ssh(cluster, f"stat -c %a {folder_of(made)}/secret.*").split()[-1] == "600"
    search.nowhere(canary, cluster)
    ssh(cluster, f"scontrol release {job}")
    laptop.starts(made["run"]["id"])
    proven(ssh, cluster, made)
    assert search.for_root(canary, cluster), "it does not even run"
    search.nowhere(canary, cluster)
    said = records(ssh, cluster, job)
    assert canary.decode() not in said
    assert shares(ssh, cluster, made) == [], "a run with a single start uses up its share"
    ssh(cluster, f"touch {folder_of(made)}/go")
    assert laptop.ended(made["run"]["id"])["state"] == "completed"
    assert proofs(ssh, cluster, made) == [sha256(canary).hexdigest()]
    if cluster == "alpha":  # environments are stored permanently: one share is found
        eventually(lambda: "YURT_SHARE_CANARY=" in records(ssh, cluster, job))
        assert canary.decode() not in records(ssh, cluster, job)
    search.nowhere(canary, cluster)
    assert canary.decode() not in laptop.quick("show", "-", "--json").out + laptop.quick("logs", "-").out


@pytest.mark.slow
def test_after_a_requeue_it_is_there_again(laptop: Laptop, ssh: Ssh, search: Search, canary: bytes) -> None:
    made = laptop.run("alpha", "--requeue", "--secret", "CANARY", "sh", "-c", PATIENT)
    job = made["status"]["job"]
    proven(ssh, "alpha", made)
    assert len(shares(ssh, "alpha", made)) == 1
    ssh("alpha", f"scontrol requeue {job}")
    proven(ssh, "alpha", made, starts=2)
    search.nowhere(canary, "alpha")
    ssh("alpha", f"touch {folder_of(made)}/go")
    row = laptop.ended(made["run"]["id"])
    assert (row["state"], row["restarts"]) == ("completed", 1)
    assert set(proofs(ssh, "alpha", made)) == {sha256(canary).hexdigest()}
    assert shares(ssh, "alpha", made) == []
    search.nowhere(canary, "alpha")


@pytest.mark.parametrize("cluster", ["alpha", "beta"])
def test_every_task_has_it(laptop: Laptop, ssh: Ssh, search: Search, canary: bytes, cluster: str) -> None:
    """srun passes the environment over the network and through slurmd, and none of it is stored."""
    made = laptop.run(cluster, "--secret", "CANARY", "--nodes", "2", "--ntasks", "2", "sh", "-c", PATIENT)
    proven(ssh, cluster, made, starts=2)
    assert len(search.for_root(canary, cluster)) == 2
    search.nowhere(canary, cluster)
    ssh(cluster, f"touch {folder_of(made)}/go")
    assert laptop.ended(made["run"]["id"])["state"] == "completed"
    assert proofs(ssh, cluster, made) == [sha256(canary).hexdigest()] * 2
    search.nowhere(canary, cluster)


@pytest.mark.parametrize("cluster", ["alpha", "beta"])
def test_a_cancelled_run_leaves_no_share(laptop: Laptop, ssh: Ssh, canary: bytes, cluster: str) -> None:
    words = ["--secret", "CANARY", *(["--requeue"] if cluster == "alpha" else [])]
    waits = laptop.run(cluster, *words, "--hold", "sh", "-c", PATIENT)
    runs = laptop.run(cluster, *words, "sh", "-c", PATIENT)
    proven(ssh, cluster, runs)
    assert len(shares(ssh, cluster, waits)) == 1
    assert len(shares(ssh, cluster, runs)) == (cluster == "alpha")
    for made in (waits, runs):
        assert laptop.quick("cancel", made["run"]["id"]).code == 0
        assert laptop.ended(made["run"]["id"])["state"] == "cancelled"
        assert shares(ssh, cluster, made) == []


@pytest.mark.parametrize("cluster", ["alpha", "beta"])
def test_large_and_unusual_values(laptop: Laptop, ssh: Ssh, cluster: str) -> None:
    values = {
        "LARGE": os.urandom(secrets.LARGEST * 2).replace(b"\0", b"")[: secrets.LARGEST],
        "ODD": b"\xff'\n\n",
        "NO": b"",
    }
    environment = {name: os.fsdecode(value) for name, value in values.items()}
    laptop.environment |= environment
    words = [word for name in values for word in ("--secret", name)]
    command = 'for each in LARGE ODD NO; do printenv "$each" | sha256sum; done > "$YURT_RUN_DIR/proof"'
    made = laptop.run(cluster, *words, "sh", "-c", command)
    assert laptop.ended(made["run"]["id"])["state"] == "completed"
    assert proofs(ssh, cluster, made) == [sha256(value + b"\n").hexdigest() for value in values.values()]


def test_a_second_job_of_one_run_leaves_the_firsts_share(laptop: Laptop, ssh: Ssh, canary: bytes) -> None:
    """Each of two submissions has its own shares; the winner of the gate has a matching pair."""
    made = laptop.run("alpha", "--secret", "CANARY", "--hold", "sh", "-c", PROVES)
    run, job = made["run"]["id"], made["status"]["job"]
    ssh("alpha", f"scontrol update job={job} name=hidden")
    laptop.environment["YURT_CLOCKS"] += " resubmit=1 skew=1000000000"
    eventually(lambda: laptop.row(run)["job"] not in ("", job))
    assert len(shares(ssh, "alpha", made)) == 2
    second = laptop.row(run)["job"]
    ssh("alpha", f"scontrol release {job}")
    proven(ssh, "alpha", made)
    ssh.ask("alpha", f"scontrol release {second}")
    assert laptop.ended(run)["state"] == "completed"
    assert proofs(ssh, "alpha", made) == [sha256(canary).hexdigest()]
    eventually(lambda: shares(ssh, "alpha", made) == [])


def test_a_loser_at_the_gate_removes_only_its_own_share(laptop: Laptop, ssh: Ssh, canary: bytes) -> None:
    made = laptop.run("alpha", "--requeue", "--secret", "CANARY", "--hold", "sh", "-c", PATIENT)
    run, job = made["run"]["id"], made["status"]["job"]
    ssh("alpha", f"scontrol update job={job} name=hidden")
    laptop.environment["YURT_CLOCKS"] += " resubmit=1 skew=1000000000"
    eventually(lambda: laptop.row(run)["job"] not in ("", job))
    second = laptop.row(run)["job"]
    first = set(ssh("alpha", f"cd {folder_of(made)} && ls secret.*").split())
    ssh("alpha", f"scontrol release {second}")
    proven(ssh, "alpha", made)
    ssh("alpha", f"scontrol release {job}")
    eventually(lambda: len(shares(ssh, "alpha", made)) == 1)
    nonce = ssh("alpha", f"cat {folder_of(made)}/winner").partition(".")[0]
    assert shares(ssh, "alpha", made) == [f"secret.{nonce}"] and len(first) == 2
    ssh("alpha", f"touch {folder_of(made)}/go")
    assert laptop.ended(run)["state"] == "completed"


def test_a_missing_secret_does_not_block_other_runs(laptop: Laptop, lab: Lab, ssh: Ssh, canary: bytes) -> None:
    laptop.quick("login", "--close", "alpha")
    lab.faults.cut("alpha")
    try:
        made = laptop.run("alpha", "--secret", "CANARY", "sh", "-c", PROVES)
        behind = laptop.run("alpha", "true")
    finally:
        lab.faults.heal("alpha")
    run = made["run"]["id"]
    del laptop.environment["CANARY"]
    done = laptop.quick("agent", "once", "--json")
    assert (done.code, done.json["data"]["submitted"], done.json["data"]["pending"]) == (
        0,
        [behind["run"]["id"]],
        [run],
    )
    row = laptop.row(run)
    assert row["state"] == "waiting"
    assert row["reason"] == "secret 'CANARY' is neither in the environment nor in the keyring"
    laptop.environment["CANARY"] = canary.decode()
    assert laptop.quick("agent", "once", "--json").json["data"]["submitted"] == [run]
    assert laptop.ended(run)["state"] == "completed"
    assert proofs(ssh, "alpha", made) == [sha256(canary).hexdigest()]


@pytest.mark.parametrize("cluster", ["alpha", "beta"])
def test_a_site_that_does_not_pass_environments_to_jobs(laptop: Laptop, ssh: Ssh, canary: bytes, cluster: str) -> None:
    for option in ("export=NONE", "export=PATH,HOME"):
        done = laptop.quick("--context", cluster, "run", "--secret", "CANARY", "--sbatch-option", option, "true")
        assert done.code == 2 and f"sbatch option {option} cannot be combined with secrets" in done.err
    assert laptop.run(cluster, "--secret", "CANARY", "--sbatch-option", "export=ALL,X=1", "true")
    ssh(cluster, "cp ~/.bashrc ~/.bashrc.was 2> /dev/null || : > ~/.bashrc.was")
    try:
        ssh(cluster, "{ echo export SBATCH_EXPORT=NONE; cat ~/.bashrc.was; } > ~/.bashrc")
        made = laptop.run(cluster, "--secret", "CANARY", "sh", "-c", 'test -n "$CANARY"')
        assert laptop.ended(made["run"]["id"])["state"] == "completed", "yurt clears the variable"
        # Simulates a site whose plugins clear the environment of jobs.
        wrapper = '#!/bin/sh\\nunset YURT_SHARE_CANARY\\nexec /usr/bin/sbatch "$@"\\n'
        ssh(cluster, f"mkdir -p ~/bin && printf '{wrapper}' > ~/bin/sbatch && chmod 755 ~/bin/sbatch")
        ssh(cluster, "{ echo 'export PATH=$HOME/bin:$PATH'; cat ~/.bashrc.was; } > ~/.bashrc")
        made = laptop.run(cluster, "--secret", "CANARY", "sh", "-c", 'touch "$YURT_RUN_DIR/started"')
        row = laptop.ended(made["run"]["id"])
        assert (row["state"], row["exit_code"]) == ("failed", 78)
        said = laptop.quick("logs", made["run"]["id"]).err
        assert "secret CANARY is missing: this site does not pass the environment of sbatch to jobs" in said
        assert ssh.ask(cluster, f"test -e {folder_of(made)}/started").code == 1
    finally:
        ssh(cluster, "mv ~/.bashrc.was ~/.bashrc; rm -rf ~/bin")


def test_a_variable_of_the_same_name_on_the_site_is_removed(
    laptop: Laptop, ssh: Ssh, search: Search, canary: bytes
) -> None:
    """A value set by ssh or a profile would be passed to sbatch and stored in its records."""
    theirs = f"theirs-{os.urandom(12).hex()}"
    ssh("alpha", "cp ~/.bashrc ~/.bashrc.was 2> /dev/null || : > ~/.bashrc.was")
    try:
        ssh("alpha", f"{{ echo export CANARY={theirs}; cat ~/.bashrc.was; }} > ~/.bashrc")
        made = laptop.run("alpha", "--secret", "CANARY", "sh", "-c", PROVES)
    finally:
        ssh("alpha", "mv ~/.bashrc.was ~/.bashrc")
    assert laptop.ended(made["run"]["id"])["state"] == "completed"
    assert proofs(ssh, "alpha", made) == [sha256(canary).hexdigest()]
    assert not [file for file in search.on_disks(theirs.encode()) if "/state/" in file]


@pytest.mark.parametrize("cluster", ["alpha", "beta"])
def test_a_run_cancelled_with_scancel_leaves_no_share(laptop: Laptop, ssh: Ssh, canary: bytes, cluster: str) -> None:
    made = laptop.run(cluster, "--secret", "CANARY", "--hold", "true")
    ssh(cluster, f"scancel {made['status']['job']}")
    assert len(shares(ssh, cluster, made)) == 1
    assert laptop.ended(made["run"]["id"])["state"] == "cancelled"
    assert shares(ssh, cluster, made) == []


PIECES = f'{PROVES}; date > "$YURT_CHECKPOINTS/saved.$YURT_RESTARTS"; [ "$YURT_RESTARTS" -ge 2 ] || exit 85'


@pytest.mark.parametrize("cluster", [pytest.param("alpha", marks=pytest.mark.slow), "beta"])
def test_each_start_of_a_run_has_it(laptop: Laptop, ssh: Ssh, search: Search, canary: bytes, cluster: str) -> None:
    """A run that is requeued in the same job, or on beta in jobs that it submits itself."""
    made = laptop.run(cluster, "--requeue", "--secret", "CANARY", "sh", "-c", PIECES)
    row = laptop.ended(made["run"]["id"])
    assert (row["state"], row["restarts"]) == ("completed", 2), row
    assert proofs(ssh, cluster, made) == [sha256(canary).hexdigest()] * 3
    assert shares(ssh, cluster, made) == []
    search.nowhere(canary, cluster)


@pytest.mark.slow
def test_a_start_that_yurt_submits_has_it(laptop: Laptop, ssh: Ssh, canary: bytes) -> None:
    """The job cannot submit its next start: the next refresh submits one, with its own shares."""
    ssh("beta", "cp ~/.bashrc ~/.bashrc.was 2> /dev/null || : > ~/.bashrc.was")
    wrapper = '#!/bin/sh\\ncase $(uname -n) in n*) exit 1 ;; esac\\nexec /usr/bin/sbatch "$@"\\n'
    try:
        ssh("beta", f"mkdir -p ~/bin && printf '{wrapper}' > ~/bin/sbatch && chmod 755 ~/bin/sbatch")
        ssh("beta", "{ echo 'export PATH=$HOME/bin:$PATH'; cat ~/.bashrc.was; } > ~/.bashrc")
        made = laptop.run("beta", "--requeue", "--secret", "CANARY", "sh", "-c", PIECES.replace("-ge 2", "-ge 1"))
        row = laptop.ended(made["run"]["id"])
    finally:
        ssh("beta", "mv ~/.bashrc.was ~/.bashrc; rm -rf ~/bin")
    assert (row["state"], row["restarts"]) == ("completed", 1), row
    assert proofs(ssh, "beta", made) == [sha256(canary).hexdigest()] * 2
    assert shares(ssh, "beta", made) == []
