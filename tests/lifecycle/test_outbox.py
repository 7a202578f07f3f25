"""Runs that cannot be submitted now, and sites that respond late or wrongly: nothing is lost, all is reported."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from tests.calls import YURT
from tests.lab.conftest import Ssh
from tests.laptop import Laptop
from yurt.lab import Lab
from yurt.lab.relay import Rules
from yurt.testing.waiting import eventually

pytestmark = pytest.mark.lab


@pytest.fixture
def ssh(lab: Lab) -> Ssh:
    return Ssh(lab)


@contextmanager
def without_controller(lab: Lab, cluster: str) -> Iterator[None]:
    """Stop slurmctld of a cluster, and let its Slurm commands time out after two seconds."""
    lab.configure(cluster, {"MessageTimeout": "2"})
    lab.faults.stop_ctld(cluster)
    try:
        yield
    finally:
        lab.faults.start_ctld(cluster)
        lab.configure(cluster, {"MessageTimeout": ""})


def states(laptop: Laptop, *runs: str) -> list[str]:
    """Wait for runs and return their states."""
    done = laptop("wait", *runs, "--timeout", "240", "--json")
    assert done.code in (0, 1), done
    return [each["status"]["state"] for each in done.json["data"]]


def test_saved_runs_are_submitted_in_order(laptop: Laptop, lab: Lab) -> None:
    ledger = f"/lustre/scratch/alice/ledger-{time.time()}"
    lab.faults.cut("alpha")
    try:
        first = [laptop.run("alpha", "sh", "-c", f"echo {number} >> {ledger}") for number in range(2)]
        assert [each["status"]["state"] for each in first] == ["waiting", "waiting"]
        assert "is saved and will be submitted by the next yurt command" in first[0]["warnings"][0]
        again = laptop("agent", "once", "--json")
        assert again.code == 4
        assert len(again.json["data"]["pending"]) == 2
        assert laptop("ps", "--cached", "--json").json["data"][0]["state"] == "waiting"
    finally:
        lab.faults.heal("alpha")
    # The next command that contacts the site first submits the saved runs.
    last = laptop.run("alpha", "--cpus", "1", "sh", "-c", f"echo 2 >> {ledger}")
    runs = [each["run"]["id"] for each in (*first, last)]
    known = {row["id"]: int(row["job"]) for row in laptop("ps", "--json").json["data"]}
    jobs = [known[run] for run in runs]
    assert jobs == sorted(jobs) and jobs[-1] == int(last["status"]["job"])
    assert states(laptop, *runs) == ["completed"] * 3
    assert sorted(Ssh(lab)("alpha", f"cat {ledger}").split()) == ["0", "1", "2"]


def test_a_saved_cancellation_of_one_task_is_sent_later(laptop: Laptop, lab: Lab) -> None:
    sweep = laptop.run("alpha", "--grid", "n=1,2", "sh", "-c", "sleep 300")["run"]["id"]
    laptop.starts(sweep)
    laptop.quick("login", "--close", "alpha")
    lab.faults.cut("alpha")
    try:
        done = laptop("cancel", f"{sweep}.1", "--json")
        assert (done.code, done.json["data"][0]["delivered"]) == (4, False)
    finally:
        lab.faults.heal("alpha")
    try:
        assert laptop.ended(f"{sweep}.1")["state"] == "cancelled"
        rows = laptop("show", sweep, "--json").json["data"]["rows"]
        assert [row["state"] for row in rows] == ["running", "cancelled"]
    finally:
        laptop("cancel", sweep)


LIES = """\
if [ -e ~/.lie ]; then
  mv ~/.lie ~/.lying
  echo 'alice@alpha: Permission denied (publickey).' >&2
  exec > /dev/null
  (sleep 2; kill -9 $PPID; rm ~/.lying) > /dev/null 2>&1 &
fi
"""
"""A dotfile that once prints what ssh prints when it cannot log in, hides the output, and ends the connection."""


@pytest.fixture
def lies(lab: Lab, ssh: Ssh) -> Iterator[Callable[[], str]]:
    """Let the next command on alpha lose its connection after words that look like a refusal of ssh."""
    ssh("alpha", f"cp -p .bashrc .bashrc.saved; cat > .bashrc <<'E'\n{LIES}E\n")
    yield lambda: ssh("alpha", "touch .lie")
    ssh("alpha", "mv .bashrc.saved .bashrc; rm -f .lie .lying")


def test_a_lost_submission_that_looks_refused(laptop: Laptop, ssh: Ssh, lies: Callable[[], str]) -> None:
    ledger = f"/lustre/scratch/alice/ledger-{time.time()}"
    laptop.ended(laptop.run("alpha", "true")["run"]["id"])  # a job reads .bashrc too
    lies()
    made = laptop.run("alpha", "sh", "-c", f"echo ran >> {ledger}")
    assert made["status"]["state"] == "waiting" and "is saved" in made["warnings"][0]
    assert laptop.ended(made["run"]["id"])["state"] == "completed"
    assert ssh("alpha", f"cat {ledger}") == "ran"


def test_cancel_after_a_submission_that_looks_refused(laptop: Laptop, ssh: Ssh, lies: Callable[[], str]) -> None:
    ledger = f"/lustre/scratch/alice/ledger-{time.time()}"
    laptop.ended(laptop.run("alpha", "true")["run"]["id"])  # a job reads .bashrc too
    lies()
    made = laptop.run("alpha", "sh", "-c", f"echo begun >> {ledger}; sleep 60; echo over >> {ledger}")
    ssh("alpha", "while [ -e .lying ]; do sleep 0.1; done")  # on a quick machine `run` ends before its connection
    done = laptop("cancel", made["run"]["id"], "--json").json["data"][0]
    assert done["delivered"] and done["note"] != "cancelled before it was submitted"
    assert laptop.ended(made["run"]["id"])["state"] == "cancelled"
    assert "over" not in ssh("alpha", f"cat {ledger} 2> /dev/null || true")
    assert ssh("alpha", f"squeue -h -t pending,running -n yurt-{made['run']['id']}") == ""  # it may be completing


def test_cancel_of_a_run_that_was_never_submitted(laptop: Laptop, lab: Lab) -> None:
    lab.faults.cut("beta:login1")
    lab.faults.cut("beta:login2")
    try:
        run = laptop.run("beta", "true")["run"]["id"]
        done = laptop("cancel", run, "--json")
        assert (done.code, done.json["data"][0]["state"]) == (0, "cancelled")
    finally:
        lab.faults.heal("beta:login1")
        lab.faults.heal("beta:login2")
    assert laptop("agent", "once", "--json").json["data"]["submitted"] == []
    assert laptop.row(run)["state"] == "cancelled"


def test_cancel_of_a_running_run_on_an_unreachable_site(laptop: Laptop, lab: Lab) -> None:
    run = laptop.run("alpha", "sleep", "100")["run"]["id"]
    laptop.starts(run)
    laptop("login", "--close", "alpha")
    lab.faults.cut("alpha")
    try:
        done = laptop("cancel", run)
        assert done.code == 4
        assert done.out.startswith(f"{run}: not cancelled yet (alpha: ")
        assert done.out.endswith("); the next yurt command that reaches alpha will cancel it\n")
    finally:
        lab.faults.heal("alpha")
    assert laptop.ended(run)["state"] == "cancelled"


def test_a_controller_that_does_not_respond(laptop: Laptop, lab: Lab) -> None:
    with without_controller(lab, "beta"):
        made = laptop.run("beta", "true")
        assert made["status"]["state"] == "waiting"
        looked = laptop("ps", "--json")
        assert "cannot query beta" in looked.json["warnings"][0]
    assert laptop("agent", "once", "--json").json["data"]["submitted"] == [made["run"]["id"]]
    assert laptop.ended(made["run"]["id"])["state"] == "completed"


def test_a_full_disk(laptop: Laptop, lab: Lab) -> None:
    lab.faults.full("alpha:scratch")
    try:
        refused = laptop("--context", "alpha", "run", "true")
        assert refused.code == 5
        assert "disk is full" in refused.err
    finally:
        lab.faults.free("alpha:scratch")
    assert laptop("ps", "--json").json["data"] == [], "a rejected run is not kept"


def test_options_that_slurm_refuses(laptop: Laptop, ssh: Ssh) -> None:
    refused = laptop("--context", "alpha", "run", "--sbatch-option", "licenses=nosuch", "true")
    assert refused.code == 5
    assert "Slurm rejected" in refused.err
    found = ssh("alpha", "ls -d /lustre/scratch/alice/yurt/projects/proj-*/runs/* 2> /dev/null | wc -l")
    again = laptop("--context", "alpha", "run", "--sbatch-option", "licenses=nosuch", "true")
    assert again.code == 5
    assert ssh("alpha", "ls -d /lustre/scratch/alice/yurt/projects/proj-*/runs/* 2> /dev/null | wc -l") == found


def test_control_characters_of_a_site_are_not_printed(laptop: Laptop, ssh: Ssh) -> None:
    """A refusal of sbatch that would change the title of the terminal and its colours."""
    ssh("alpha", "mkdir -p evil; cp -p .bashrc .bashrc.saved; echo 'PATH=$HOME/evil:$PATH' > .bashrc")
    fake = "#!/bin/sh\nprintf 'sbatch: error: \\033]0;owned\\007\\033[31mInvalid account\\n' >&2\nexit 1\n"
    ssh("alpha", f"printf '%s' {shlex.quote(fake)} > evil/sbatch; chmod +x evil/sbatch")
    try:
        refused = laptop("--context", "alpha", "run", "true")
        assert refused.code == 5 and "Invalid account" in refused.err
        assert "\033" not in refused.err + refused.out and "\\x1b]0;owned" in refused.err
    finally:
        ssh("alpha", "mv .bashrc.saved .bashrc; rm -r evil")


def test_a_full_queue(laptop: Laptop) -> None:
    held = [laptop.run("alpha", "--qos", "few", "--hold", "true")]
    while held[-1]["status"]["state"] == "queued" and len(held) < 9:
        held.append(laptop.run("alpha", "--qos", "few", "--hold", "true"))
    assert held[-1]["status"]["state"] == "waiting"
    assert "you have reached your job limit" in held[-1]["warnings"][0]
    refused = laptop.quick("why", held[-1]["run"]["id"]).out
    assert f"limit: QOS few: at most {len(held) - 1} submitted jobs for each user\n" in refused
    laptop("cancel", *(each["run"]["id"] for each in held))
    assert {row["state"] for row in laptop("ps", "--json").json["data"]} == {"cancelled"}


def test_records_that_cannot_be_read(laptop: Laptop, lab: Lab, ssh: Ssh) -> None:
    lab.faults.stop_dbd("alpha")
    try:
        good = laptop.run("alpha", "sh", "-c", "exit 3")["run"]["id"]
        row = laptop.ended(good)
        assert (row["state"], row["exit_code"]) == ("failed", 3)
    finally:
        lab.faults.start_dbd("alpha")


@pytest.mark.parametrize("cluster", ["alpha", "beta"])
def test_a_job_cancelled_on_the_cluster_by_hand(laptop: Laptop, ssh: Ssh, cluster: str) -> None:
    waiting = laptop.run(cluster, "--hold", "true")
    running = laptop.run(cluster, "sleep", "100")
    laptop.starts(running["run"]["id"])
    assert laptop.row(waiting["run"]["id"])["state"] == "held"
    ssh(cluster, f"scancel {waiting['status']['job']} {running['status']['job']}")
    assert states(laptop, waiting["run"]["id"], running["run"]["id"]) == ["cancelled", "cancelled"]


@pytest.mark.parametrize("cluster", ["alpha", "beta"])
def test_a_hidden_job_is_submitted_again_and_starts_once(laptop: Laptop, ssh: Ssh, cluster: str) -> None:
    """Under another name the first job is not found; after their release, both jobs reach the gate."""
    ledger = f"/lustre/scratch/alice/twice-{time.time()}"
    # A large skew: as if the controller had been restarted since, and had lost the job.
    laptop.environment["YURT_CLOCKS"] = "slow=14 resubmit=1 skew=1000000000 rest=0"
    made = laptop.run(cluster, "--hold", "sh", "-c", f"echo started >> {ledger}; sleep 1")
    run, job = made["run"]["id"], made["status"]["job"]
    ssh(cluster, f"scontrol update job={job} name=hidden")
    assert laptop.row(run)["state"] == "unknown"
    eventually(lambda: laptop.row(run)["job"] not in ("", job), pause=0.5)
    row = laptop.row(run)
    assert row["state"] == "held"
    second = row["job"]
    ssh(cluster, f"scontrol release {job} {second}")
    assert laptop.ended(run)["state"] == "completed"
    left = f"squeue -h -t pending,running | grep -cE '^ *({job}|{second}) '"
    eventually(lambda: ssh.ask(cluster, left).out.split()[-1] == "0")
    assert ssh(cluster, f"cat {ledger}").split()[-2:].count("started") == 1


@pytest.mark.parametrize("cluster", ["alpha", "beta"])
@pytest.mark.slow("beta")
def test_following_continues_after_lost_connections(laptop: Laptop, lab: Lab, cluster: str) -> None:
    lines = 60
    words = 'printf "line %s %01500d\\n" $i 0; printf "other %s %01500d\\n" $i 0 >&2'
    script = f"i=0; while [ $i -lt {lines} ]; do {words}; i=$((i+1)); sleep 0.03; done"
    run = laptop.run(cluster, "sh", "-c", script)["run"]["id"]
    laptop("login", "--close", cluster)
    target = {"alpha": "alpha", "beta": "beta:login1"}[cluster]
    lab.faults.delay(target, Rules(cut_at=50_000, direction="down"))
    try:
        environment = {**os.environ, **laptop.environment}
        done = subprocess.run([YURT, "logs", "-f", run], env=environment, capture_output=True, timeout=120, check=False)
    finally:
        lab.faults.heal(target)
    assert done.stdout.decode().split("\n")[:-1] == [f"line {number} {'0' * 1500}" for number in range(lines)]
    assert "reconnecting" in done.stderr.decode(), "no connection was lost"
    said = [line for line in done.stderr.decode().split("\n") if line.startswith("other")]
    assert said == [f"other {number} {'0' * 1500}" for number in range(lines)]


def test_the_client_killed_at_any_moment(laptop: Laptop, lab: Lab, ssh: Ssh) -> None:
    ledger = f"/lustre/scratch/alice/kills-{time.time()}"
    laptop.run("alpha", "true")
    environment = {**os.environ, **laptop.environment}
    for number in range(8):
        words = [YURT, "--context", "alpha", "run", "sh", "-c", f"echo {number} >> {ledger}"]
        process = subprocess.Popen(words, env=environment, cwd=laptop.project, stdout=subprocess.DEVNULL)
        time.sleep(0.06 + 0.05 * number)
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert laptop("agent", "once").code == 0
    runs = [row["id"] for row in laptop("ps", "--json").json["data"]]
    assert set(states(laptop, *runs)) == {"completed"}
    started = ssh(
        "alpha", f"cat {ledger} 2> /dev/null || true"
    ).split()  # on a slow machine, none was submitted before the kill
    assert len(started) == len(set(started)) == len(runs) - 1
