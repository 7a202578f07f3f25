"""`yurt why` of runs on clusters: what holds them up in the queue, and how they failed there."""

from __future__ import annotations

import re
import subprocess

import pytest

from tests.laptop import Laptop
from tests.where.test_where_verb import full
from yurt.lab import Lab
from yurt.lab.cluster import inside
from yurt.testing.waiting import eventually

pytestmark = pytest.mark.lab


@pytest.mark.slow
def test_in_the_queue(laptop: Laptop) -> None:
    mine = laptop.run("alpha", "--hold", "true")["run"]["id"]
    try:
        eventually(lambda: laptop.quick("why", mine, "--json").json["data"]["state"] == "held")
        found = laptop.quick("why", mine)
        assert "cause: held (Slurm: JobHeldUser)\n" in found.out
        assert f"help:  release it with `yurt release {mine}`" in found.out
    finally:
        laptop.quick("cancel", mine)


@pytest.mark.slow
def test_a_limit_of_a_qos_and_a_comment(laptop: Laptop, lab: Lab) -> None:
    """alpha has accounting. Only the first of two jobs may run at a time."""
    root(lab, "alpha", "sacctmgr -i modify qos few set MaxJobsPerUser=1")
    runs: list[str] = []
    try:
        runs += [laptop.run("alpha", "--qos", "few", "--time", "5m", "sleep", "200")["run"]["id"]]
        runs += [laptop.run("alpha", "--qos", "few", "--time", "5m", "sleep", "200")["run"]["id"]]

        def limited() -> bool:
            found = laptop.quick("why", runs[1], "--json").json["data"]["pending"]
            return bool(found) and found["native"] == "QOSMaxJobsPerUserLimit" and bool(found["limits"])

        eventually(limited)
        job = laptop.quick("show", runs[1], "--json").json["data"]["status"]["job"]
        root(lab, "alpha", f"scontrol update jobid={job} admincomment='use QOS normal'")
        words = "limit: QOS few: at most 1 running job for each user; you have 1 running\n"
        # Slurm looks at a changed job again, and has no reason until then.
        eventually(lambda: words in laptop.quick("why", runs[1]).out)
        found = laptop.quick("why", runs[1]).out
        assert "admin: use QOS normal\n" in found and "CPUs" in found
        laptop.quick("cancel", *runs)
        sweep = laptop.run("alpha", "--qos", "few", "--time", "5m", "--grid", "n=0..1", "sh", "-c", "sleep 200")
        runs.append(sweep["run"]["id"])
        # One task runs, the other one has to wait.
        eventually(lambda: ": running\nsome of its tasks are in the queue\n" in laptop.quick("why", runs[-1]).out)
        eventually(lambda: words in laptop.quick("why", runs[-1]).out)
    finally:
        laptop.quick("cancel", *runs)
        root(lab, "alpha", "sacctmgr -i modify qos few set MaxJobsPerUser=-1")


def test_a_drained_node_and_a_short_partition(laptop: Laptop, lab: Lab) -> None:
    """beta has no accounting, and accepts jobs that exceed the limits of their partition."""
    root(lab, "beta", "scontrol update nodename=n2 state=drain reason='bad DIMM'")
    runs: list[str] = []
    try:
        runs += [laptop.run("beta", "--nodelist", "n2", "true")["run"]["id"]]
        runs += [laptop.run("beta", "--hold", "--time", "30m", "true")["run"]["id"]]
        job = laptop.quick("show", runs[1], "--json").json["data"]["status"]["job"]
        root(lab, "beta", f"scontrol update jobid={job} partition=short")
        laptop.quick("release", runs[1])
        eventually(lambda: "n2 is drained since" in laptop.quick("why", runs[0]).out)
        assert ": bad DIMM\n" in laptop.quick("why", runs[0]).out
        words = "limit: partition short allows 2 min; this run asks for 30 min\n"
        eventually(lambda: words in laptop.quick("why", runs[1]).out)
    finally:
        laptop.quick("cancel", *runs)
        root(lab, "beta", "scontrol update nodename=n2 state=resume")


@pytest.mark.slow
def test_what_the_site_says_about_a_failed_run(laptop: Laptop, lab: Lab) -> None:
    run = laptop.run("alpha", "--hold", "--nodelist", "n2", "sh", "-c", "kill -9 $$")["run"]["id"]
    try:
        job = laptop.quick("show", run, "--json").json["data"]["status"]["job"]
        root(lab, "alpha", f"scontrol update jobid={job} admincomment='see ticket 42'")
        laptop.quick("release", run)
        assert laptop("wait", run).code == 1
        root(lab, "alpha", "scontrol update nodename=n2 state=drain reason='bad DIMM'")
        eventually(lambda: "admin: see ticket 42\n" in laptop.quick("why", run).out)
        found = laptop.quick("why", run).out
        assert "cause: something killed the program (SIGKILL)" in found
        assert re.search("node:  n2 is drained since .*: bad DIMM\n", found), found
    finally:
        laptop.quick("cancel", run)
        root(lab, "alpha", "scontrol update nodename=n2 state=resume")


@pytest.mark.slow
def test_a_site_that_does_not_respond(laptop: Laptop, lab: Lab) -> None:
    mine = laptop.run("alpha", "--hold", "true")["run"]["id"]
    try:
        eventually(lambda: laptop.quick("why", mine, "--json").json["data"]["state"] == "held")
        lab.faults.cut("alpha")
        cut = laptop.quick("why", mine)
        assert "cannot query alpha" in cut.err and "cause: held" in cut.out
    finally:
        lab.faults.heal("alpha")
        laptop.quick("cancel", mine)


@pytest.mark.slow
def test_a_sweep_and_a_race_in_the_queue(laptop: Laptop) -> None:
    whole = ["--cpus", "8", "--time", "5m", "--no-snapshot"]
    runs: list[str] = []
    try:
        with full(laptop, "alpha", 3), full(laptop, "beta", 2):
            raced = laptop.quick("run", "--json", "--race", "alpha,beta", *whole, "true")
            runs.append(race := raced.json["data"]["run"]["id"])
            runs.append(sweep := laptop.run("alpha", *whole, "--grid", "n=0..9", "true")["run"]["id"])

            def waits(run: str, native: str) -> bool:
                found = laptop.quick("why", run, "--json").json["data"]
                return found["state"] == "queued" and (found["pending"] or {}).get("native") == native

            # Also while a race is open, a sweep is not queried on the other site, which does not list it.
            eventually(lambda: waits(sweep, "Priority"))
            assert re.search(r"queue: \d+ jobs? ahead of it .*in partition main\n", laptop.quick("why", sweep).out)
            task = laptop.quick("why", f"{sweep}.3").out
            assert "cause: other jobs have higher priority (Slurm: Priority)\n" in task
            assert re.search(r"queue: \d+ jobs? ahead of it", task), task
            eventually(lambda: "where: beta (main): queued" in laptop.quick("why", race).out)
            found = laptop.quick("why", race).out
            assert found.startswith(f"{race} on alpha, beta: queued\n"), found
            assert "where: alpha (main): queued" in found and "help:  it runs where it starts first" in found
            laptop.quick("cancel", *runs)  # before nodes are free again: a race that starts leaves claims until its end
    finally:
        laptop.quick("cancel", *runs)


@pytest.mark.slow
def test_tasks_of_a_sweep(laptop: Laptop) -> None:
    script = 'case $YURT_PARAM_N in 3) exec python3 -c "import nonesuch" ;; esac'
    sweep = laptop.run("alpha", "--hold", "--time", "5m", "--grid", "n=2..4", "sh", "-c", script)["run"]["id"]
    try:
        eventually(lambda: "cause: held" in laptop.quick("why", f"{sweep}.1").out)
        assert f"help:  release it with `yurt release {sweep}`\n" in laptop.quick("why", f"{sweep}.1").out
        laptop.quick("release", sweep)
        assert laptop("wait", sweep).code == 1
        words = "cause: Python package or module 'nonesuch' is not installed in its environment\n"
        assert f"1 task (1):\n{words}" in laptop.quick("why", sweep).out
        assert words in laptop.quick("why", f"{sweep}.1").out
        assert "nothing is wrong with it" in laptop.quick("why", f"{sweep}.2").out
    finally:
        laptop.quick("cancel", sweep)


@pytest.mark.slow
@pytest.mark.parametrize("context", ["alpha", "beta"])
def test_a_dependency_that_cannot_be_satisfied(laptop: Laptop, context: str) -> None:
    first = laptop.run(context, "--time", "5m", "--no-snapshot", "sh", "-c", "sleep 3; exit 3")["run"]["id"]
    second = laptop.run(context, "--time", "5m", "--no-snapshot", "--after", first, "true")["run"]["id"]
    try:
        eventually(lambda: laptop.row(second)["state"] == "cancelled")
        found = laptop.quick("why", second).out
        assert "cause: a run that it depends on did not complete\n" in found
        assert f"after: run {first} has not completed: failed\n" in found
        assert f"help:  run `yurt retry {first}`; when that has completed, run `yurt retry {second}`" in found
    finally:
        laptop.quick("cancel", first, second)


@pytest.mark.slow
def test_maintenance(laptop: Laptop, lab: Lab) -> None:
    maintenance = "starttime=now+30minutes duration=60 nodes=ALL users=root flags=maint,ignore_jobs"
    root(lab, "alpha", f"scontrol create reservation reservationname=works {maintenance}")
    run = ""
    try:
        run = laptop.run("alpha", "--time", "2h", "--no-snapshot", "true")["run"]["id"]
        eventually(lambda: "maint: reservation works begins at " in laptop.quick("why", run).out)
        found = laptop.quick("why", run).out
        assert "(Slurm: ReqNodeNotAvail" in found and "on 3 nodes\n" in found
    finally:
        laptop.quick("cancel", run)
        root(lab, "alpha", "scontrol delete reservationname=works")


@pytest.mark.slow
def test_a_node_without_power(laptop: Laptop, lab: Lab) -> None:
    run = laptop.run("alpha", "--nodelist", "n3", "--time", "5m", "--no-snapshot", "sleep", "300")["run"]["id"]
    try:
        laptop.starts(run)
        lab.faults.kill_node("alpha:n3")
        eventually(lambda: laptop.row(run)["state"] == "node_failed")
        found = laptop.quick("why", run).out
        assert "cause: its node failed: n3" in found and "type:" not in found
        assert f"when n3 is back, run it again with `yurt retry {run}`\n" in found, "a retry cannot exclude it"
        assert re.search("node:  n3 is down since .*: Not responding", found), found
    finally:
        lab.faults.start_node("alpha:n3")
        laptop.quick("cancel", run)


@pytest.mark.slow
def test_a_time_limit(laptop: Laptop) -> None:
    run = laptop.run("alpha", "--time", "1m", "--no-snapshot", "sleep", "300")["run"]["id"]
    try:
        assert laptop("wait", run).code == 1
        found = laptop.quick("why", run).out
        assert "cause: it reached its time limit of 1 min; it ran for 1 min\n" in found
        assert f"type:  yurt retry {run} --time 2m\n" in found
    finally:
        laptop.quick("cancel", run)


def root(lab: Lab, cluster: str, command: str) -> None:
    """Run a command of Slurm as an administrator."""
    subprocess.run(inside(lab.cluster(cluster).pid("ctl"), ["sh", "-c", command]), check=True, capture_output=True)
