"""`yurt where` on the lab and on this machine, `run --context best`, and the record of estimates."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.lab.conftest import Ssh
from tests.laptop import Laptop
from tests.user import User
from yurt.lab import Lab
from yurt.store import Store
from yurt.testing.runs import PATIENT
from yurt.testing.waiting import eventually
from yurt.transport.base import Answer, Host
from yurt.where.history import history


def asked(user: User, *words: str) -> dict[str, Any]:
    found = user.quick("where", "--json", *words)
    assert found.code == 0 and found.json["kind"] == "where", found
    data: dict[str, Any] = found.json["data"]
    return data


def rows(user: User, *words: str) -> dict[tuple[str, str], dict[str, Any]]:
    """Return the rows of `yurt where`, by context and partition."""
    return {(row["context"], row["partition"]): row for row in asked(user, *words)["starts"]}


def test_this_machine(user: User) -> None:
    assert rows(user)[("local", "")]["seconds"] == 0
    assert "cores requested" in rows(user, "--cpus", "4000")[("local", "")]["why_not"]
    run = user.quick("run", "--json", "--cpus", "2", *PATIENT, YURT_LOCAL_CPUS="2").json["data"]["run"]["id"]
    try:
        busy = user.quick("where", "--json", YURT_LOCAL_CPUS="2").json["data"]["starts"][0]
        assert busy["seconds"] is None and busy["waits_for"] == "none of 2 CPUs free"
        assert "unknown" in user.quick("where", YURT_LOCAL_CPUS="2").out
    finally:
        user.quick("cancel", run)
    own = asked(user, run)
    assert own["run"] == run and own["advice"] == ""


def test_mistakes(user: User) -> None:
    assert user.quick("where", "nonesuch").code == 3
    both = user.quick("where", "-", "--cpus", "2")
    assert both.code == 2 and "cannot be combined" in both.err
    assert "context 'nope' not found" in user.quick("where", "--context", "local,nope").err
    refused = user.quick("context", "add", "best", "--slurm-url", "x@nowhere.invalid")
    assert refused.code == 2 and "'best' cannot be the name of a context" in refused.err
    for words in (["cluster", "best"], ["dev", "up", "--context", "best"], ["where", "--context", "best"]):
        only = user.quick(*words)
        assert only.code == 3 and "only `yurt run --context best` chooses one" in only.err
    assert "names no context" in user.quick("where", "--context", ",").err
    none = user.quick("run", "--context", "best", "train.py")
    assert none.code == 2 and "no cluster was probed yet" in none.err
    assert not (user.home / "data" / "yurt.db").exists() or not user.quick("ps", "--json").json["data"]


def test_contexts_of_a_project(user: User) -> None:
    user.environment["YURT_LOCAL_CPUS"] = "64"
    (user.home / "config").mkdir(exist_ok=True)
    text = "contexts: {other: {type: local}, best: {type: local}}\n"
    (user.home / "config" / "contexts.yaml").write_text(text)
    assert {context for context, _partition in rows(user)} == {"local", "other", "best"}
    (user.project / "yurt.yaml").write_text("contexts: [other]\n")
    assert set(rows(user)) == {("other", "")}
    named = user.quick("run", "--context", "best", "--json", "true").json["data"]["run"]
    assert named["context"] == "best"  # a context of this name has precedence
    (user.project / "yurt.yaml").write_text("contexts: other\n")
    wrong = user.quick("where")
    assert wrong.code == 2 and "contexts must be a list of names of contexts" in wrong.err
    (user.home / "config" / "contexts.yaml").write_text("contexts: {other: {type: local}}\n")
    (user.project / "yurt.yaml").write_text("contexts: [other]\n")
    done = user.quick("run", "--context", "best", "true")
    assert done.code == 0 and done.err == "best: other, starts now\n" and "on other" in done.out
    again = user.quick("run", "--json", "true", YURT_CONTEXT="best").json
    assert again["warnings"] == ["best: other, starts now"] and again["data"]["run"]["context"] == "other"
    plan = user.quick("run", "--dry-run", "--context", "best", "true")
    assert "best: other, starts now" in plan.err and "on other" in plan.out


def test_a_site_that_does_not_respond(user: User) -> None:
    (user.home / "config").mkdir(exist_ok=True)
    text = "contexts: {far: {type: slurm, slurm_url: x@127.0.0.1, ssh_options: [-p, '9']}}\n"
    (user.home / "config" / "contexts.yaml").write_text(text)
    found = user.quick("where")
    assert found.code == 0 and "cannot query far" in found.err
    assert re.search(r"^local +now", found.out, re.MULTILINE) and re.search(r"^far +unknown", found.out, re.MULTILINE)
    assert user.quick("where", "--context", "far").code == 4


@contextmanager
def full(laptop: Laptop, context: str, nodes: int) -> Iterator[list[str]]:
    """Occupy all nodes of a cluster for up to an hour."""
    runs = [
        laptop.run(context, "--cpus", "8", "--time", "1h", "--no-snapshot", "sleep", "3000")["run"]["id"]
        for _node in range(nodes)
    ]
    try:
        for run in runs:
            laptop.starts(run)
        yield runs
    finally:
        laptop.quick("cancel", *runs)


def queue(laptop: Laptop, context: str) -> list[Any]:
    live = laptop.quick("cluster", context, "--json").json["data"][0]["live"]
    return [live["queue"]["running"], live["queue"]["pending"]]


def planned(laptop: Laptop, context: str, run: str) -> bool:
    """Whether Slurm has planned the start of a pending run."""
    live = laptop.quick("cluster", context, "--json").json["data"][0]["live"]
    return any(job["run"] == run and job["starts_at"] is not None for job in live["queue"]["mine"])


@pytest.mark.lab
def test_a_full_cluster(laptop: Laptop, monkeypatch: pytest.MonkeyPatch) -> None:
    trips: Counter[str] = Counter()
    run = Host.run

    def counted(self: Host, *words: Any, **more: Any) -> Answer:
        trips[self.name] += 1
        return run(self, *words, **more)

    (laptop.project / "yurt.yaml").write_text("contexts: [alpha, beta]\n")
    with full(laptop, "beta", 2):
        before = queue(laptop, "beta")
        with monkeypatch.context() as patch:
            patch.setattr(Host, "run", counted)
            found = asked(laptop, "--cpus", "4", "--time", "2h")
            assert asked(laptop, "--cpus", "4", "--time", "2h")["smaller"] == found["smaller"]
        assert trips == {"alpha": 1, "beta": 1}, "the second answer comes from the cache"
        assert queue(laptop, "beta") == before, "nothing is submitted"
        starts = {(row["context"], row["partition"]): row for row in found["starts"]}
        alpha, beta = starts["alpha", "main"], starts["beta", "main"]
        assert alpha["seconds"] <= 60 and alpha["waits_for"] == ""
        assert 3000 < beta["seconds"] <= 3600 and beta["low"] < beta["seconds"] < beta["high"]
        assert "none of 16 CPUs free" in beta["waits_for"]
        # beta does not enforce this limit: sbatch --test-only alone would say that it starts.
        assert starts["beta", "short"]["why_not"] == "time 2h exceeds the maximum of partition 'short', 2m"
        assert starts["alpha", "scavenge"]["preempted"]
        line = "best: alpha, partition main, starts now (beta: in "
        made = laptop.quick("run", "--context", "best", "--cpus", "4", "--time", "2h", "train.py")
        assert made.code == 0 and made.err.startswith(line), made
        laptop.ended("-")
        with Store(str(laptop.home / "data" / "yurt.db")) as store:
            (pair,) = history(store, "alpha").pairs["main"]
        assert pair.within and pair.expected <= 60
        assert asked(laptop, "--context", "alpha")["records"] == [
            {"context": "alpha", "within": 1, "runs": 1, "waits": 0}
        ]
        text = laptop.quick("where", "--context", "alpha").out
        assert "alpha: in 1 of 1 run the start was within the range" in text
        mine = laptop.run("beta", "--cpus", "8", "--time", "2h", "--no-snapshot", "true")["run"]["id"]
        try:
            eventually(lambda: planned(laptop, "beta", mine))  # before it is asked: answers are kept for a minute
            assert asked(laptop, mine)["run_seconds"]
            assert asked(laptop, mine)["advice"] == (
                "submit it again with `--context alpha` and its other options, then cancel this one: "
                f"`yurt cancel {mine}`"
            )
        finally:
            laptop.quick("cancel", mine)


@pytest.mark.lab
def test_a_shorter_time_starts_now(laptop: Laptop, lab: Lab) -> None:
    from tests.contexts.test_cluster import scontrol

    maintenance = ["starttime=now+90minutes", "duration=60", "nodes=ALL", "users=root", "flags=maint,ignore_jobs"]
    scontrol(lab, "create", "reservation", "reservationname=works", *maintenance)
    try:
        found = asked(laptop, "--context", "alpha", "--partition", "main", "--time", "4h")
        (row,) = found["starts"]
        assert row["waits_for"].startswith("maintenance 'works'") and 9000 - 120 <= row["seconds"] <= 9060
        (less,) = found["smaller"]
        assert (less["minutes"], less["seconds"] <= 60) == (80, True)
        text = laptop.quick("where", "--context", "alpha", "--partition", "main", "--time", "4h").out
        assert "with --time 1h20m instead of 4h it would start now on alpha in partition main" in text
    finally:
        scontrol(lab, "delete", "reservationname=works")


@pytest.mark.lab
@pytest.mark.slow
def test_waits_that_do_not_count(laptop: Laptop) -> None:
    rows(laptop, "--context", "alpha", "--time", "5m")
    held = laptop.run("alpha", "--hold", "--time", "5m", "--no-snapshot", "true")["run"]["id"]
    try:
        with Store(str(laptop.home / "data" / "yurt.db")) as store:
            assert store.delayed_runs("alpha") == {held} and store.estimates("alpha", 9) == []
            assert not (laptop.home / "data" / "where" / "alpha.json").exists(), "invalid after a submission"
        laptop.quick("release", held)
        laptop.ended(held)
        with Store(str(laptop.home / "data" / "yurt.db")) as store:
            assert history(store, "alpha").waits == {}
    finally:
        laptop.quick("cancel", held)


@pytest.mark.lab
@pytest.mark.slow
def test_at_most_eight_test_submissions(laptop: Laptop, lab: Lab) -> None:
    """Each uses up a job id: the next real job shows how many there were."""
    from tests.contexts.test_cluster import scontrol

    first = int(laptop.run("alpha", "--no-snapshot", "true")["status"]["job"])
    assert len(rows(laptop, "--context", "alpha", "--time", "1m")) == 4
    second = int(laptop.run("alpha", "--no-snapshot", "true")["status"]["job"])
    assert 0 < second - first - 1 <= 8
    names = [f"more{number}" for number in range(9)]
    try:
        for name in names:
            scontrol(lab, "create", f"partitionname={name}", "nodes=n1", "state=up")
        assert laptop.quick("context", "probe", "alpha").code == 0
        found = laptop.quick("where", "--context", "alpha", "--time", "1m", "--json").json
        (warning,) = found["warnings"]
        assert "not asked about partition more" in warning and "at most 8 test submissions" in warning
        asked_about = {row["partition"] for row in found["data"]["starts"]}
        assert "main" in asked_about and len(asked_about) == 8
        named = rows(laptop, "--context", "alpha", "--partition", "more8", "--time", "1m")
        assert set(named) == {("alpha", "more8")}
        third = int(laptop.run("alpha", "--no-snapshot", "true")["status"]["job"])
        assert third - second - 1 <= 8 + 8
    finally:
        for name in names:
            scontrol(lab, "delete", f"partitionname={name}")
        laptop.quick("context", "probe", "alpha")


@pytest.mark.lab
@pytest.mark.slow
def test_what_best_takes_into_account(laptop: Laptop, lab: Lab) -> None:
    ssh = Ssh(lab)
    (laptop.project / "yurt.yaml").write_text("contexts: [alpha, beta]\n")
    ssh("beta", "mkdir -p /lustre/scratch/alice/only-there")
    try:
        stage = ("--stage", "data=/lustre/scratch/alice/only-there")
        found = laptop.quick("run", "--dry-run", "--context", "best", *stage, "true").err
        assert found.startswith("best: beta, "), found
        assert "(alpha: /lustre/scratch/alice/only-there does not exist" in found
    finally:
        ssh("beta", "rmdir /lustre/scratch/alice/only-there")
    (laptop.project / "job.sbatch").write_text("#!/bin/sh\n#SBATCH --gres=gpu:1\n#SBATCH --time=5\ntrue\n")
    found = laptop.quick("run", "--dry-run", "--context", "best", "job.sbatch").err
    assert found.startswith("best: alpha, partition main, starts now (beta: "), found  # only alpha has GPUs
    made = laptop.quick("run", "--json", "--context", "best", "--time", "5m", "--grid", "n=0..2", "true").json
    assert made["warnings"][0].startswith("best: "), made
    sweep = made["data"]["run"]
    assert sweep["context"] in ("alpha", "beta") and sweep["tasks"] == 3
    assert laptop("wait", sweep["id"]).code == 0
