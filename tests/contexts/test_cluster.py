"""`yurt cluster` on the lab and on this machine: what it shows, what it costs, and sites that do not respond."""

from __future__ import annotations

import subprocess
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pexpect
import pytest

from tests.laptop import Laptop
from tests.lifecycle.test_outbox import without_controller
from tests.user import User
from yurt.contexts import connect
from yurt.lab import Lab
from yurt.lab.cluster import inside
from yurt.model.facts import Account
from yurt.model.live import Live
from yurt.testing.waiting import eventually
from yurt.transport.base import Answer, Host


def scontrol(lab: Lab, *words: str) -> str:
    """Run scontrol as the administrator of alpha."""
    command = inside(lab.cluster("alpha").pid("ctl"), ["scontrol", *words])
    return subprocess.run(command, capture_output=True, check=True, text=True).stdout


@contextmanager
def busy_alpha(lab: Lab) -> Iterator[None]:
    """Drain a node of alpha, close a partition, and plan maintenance in half an hour."""
    scontrol(lab, "update", "nodename=n3", "state=drain", "reason=disk|full")
    scontrol(lab, "update", "partitionname=short", "allowaccounts=root")
    maintenance = ["starttime=now+30minutes", "duration=60", "nodes=n1,n2", "users=root", "flags=maint,ignore_jobs"]
    scontrol(lab, "create", "reservation", "reservationname=upgrade", *maintenance)
    try:
        eventually(lambda: "DRAINING" not in scontrol(lab, "show", "node", "n3"))  # until jobs of other tests ended
        yield
    finally:
        scontrol(lab, "delete", "reservationname=upgrade")
        scontrol(lab, "update", "partitionname=short", "allowaccounts=ALL")
        scontrol(lab, "update", "nodename=n3", "state=resume")


def asked(laptop: User, *words: str) -> dict[str, Any]:
    """Return the clusters in the output of `yurt cluster --json`, by context."""
    found = laptop.quick("cluster", "--json", *words)
    assert found.code == 0 and found.json["kind"] == "clusters", found
    return {each["context"]: each for each in found.json["data"]}


def jobs(laptop: Laptop) -> list[dict[str, Any]]:
    """Return the user's jobs on alpha."""
    found: list[dict[str, Any]] = asked(laptop, "alpha")["alpha"]["live"]["queue"]["mine"]
    return found


def test_alpha_beta_and_this_machine(laptop: Laptop, lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    trips: Counter[str] = Counter()
    run = Host.run

    def counted(self: Host, *words: Any, **more: Any) -> Answer:
        trips[self.name] += 1
        return run(self, *words, **more)

    with busy_alpha(lab):
        made = laptop.run("alpha", "--nodelist", "n3", "--cpus", "8", "train.py")["run"]["id"]
        try:
            job: dict[str, Any] = {}

            def has_place() -> bool:
                job.update(next(each for each in jobs(laptop) if each["run"] == made))
                return job["place"] is not None

            eventually(has_place)
            assert job["state"] == "pending" and job["partition"] == "main" and job["reason"], job
            with monkeypatch.context() as patch:
                patch.setattr(Host, "run", counted)
                found = asked(laptop, "--all")
            assert trips == {"alpha": 1, "beta": 1}
            alpha, beta, local = (found[name]["live"] for name in ("alpha", "beta", "local"))
            _check_alpha(alpha)
            assert found["alpha"]["notes"][0].startswith("maintenance 'upgrade' of 2 nodes begins in ")
            assert beta["nodes"]["states"] == {"idle": 2} and beta["fair_share"] == [] and not beta["accounting_silent"]
            assert local["nodes"]["cpus"] and local["load"] is not None and found["local"]["facts"] is None
            _check_text(laptop)
        finally:
            assert laptop.quick("cancel", made).code == 0


def _check_alpha(live: dict[str, Any]) -> None:
    assert live["controllers"] == [{"host": "ctl", "role": "primary", "up": True}]
    assert live["nodes"]["states"]["drained"] == 1 and sum(live["nodes"]["states"].values()) == 3
    partitions = {each["name"]: each for each in live["partitions"]}
    assert partitions["main"]["default"] and partitions["main"]["usable"] and partitions["main"]["pending"] >= 1
    assert partitions["short"]["why_not"] == "only for account root" and partitions["spot"]["preempt"] == "requeue"
    assert [(gpu["type"], gpu["total"]) for gpu in partitions["main"]["nodes"]["gpus"]] == [("a100", 4)]
    assert [(each["node"], each["state"], each["reason"]) for each in live["troubles"]] == [
        ("n3", "drained", "disk|full")
    ]
    assert live["fair_share"][0]["account"] == "lab" and 0 <= live["fair_share"][0]["factor"] <= 1
    (reserved,) = live["reservations"]
    assert reserved["maintenance"] and not reserved["usable"] and reserved["node_count"] == 2


def _check_text(laptop: Laptop) -> None:
    child = laptop.spawn("cluster", "alpha", "-v", columns=80)
    child.expect(pexpect.EOF)
    lines = str(child.before).replace("\r", "").split("\n")
    assert max(map(len, (line for line in lines if "\x1b" not in line))) <= 80
    assert any("x" in line and "3" in line for line in lines if line.startswith("main*"))
    shown = laptop.quick("cluster", "alpha", "-v").out
    assert "controller   ctl (primary, up)" in shown and "drained      n3" in shown and "not for you" in shown


def test_sites_that_do_not_respond(laptop: Laptop, lab: Lab) -> None:
    contexts = laptop.home / "config" / "contexts.yaml"
    text = contexts.read_text()
    contexts.write_text(f"{text.rstrip()}\n  gone: {{type: slurm, slurm_url: me@127.0.0.1, ssh_options: [-p, '1']}}\n")
    with without_controller(lab, "beta"):
        found = laptop.quick("cluster", "gone", "beta", "alpha", "local", "--json")
        shown = laptop.quick("cluster", "beta")
        (laptop.home / "config" / "facts" / "beta.json").unlink()
        never_probed = laptop.quick("cluster", "beta")
    assert found.code == 4 and len(found.json["warnings"]) == 2, found
    gone, beta, alpha, local = found.json["data"]
    assert gone["live"] is None and gone["facts"] is None
    assert beta["live"]["controllers"][0]["up"] is False and beta["live"]["silent"] and beta["facts"]["partitions"]
    assert alpha["live"]["nodes"]["cpus"] == 24 and local["live"]["nodes"]["cpus"]
    assert shown.code == 4 and "controller   ctl (primary, down)" in shown.out and "main*" in shown.out
    assert "its controller does not respond" in shown.err and "showing facts that are" in shown.err
    assert never_probed.code == 4 and "login        login" in never_probed.out, never_probed


class Meeting:
    """A backend that responds once all contexts are being queried."""

    def __init__(self, barrier: threading.Barrier) -> None:
        self.barrier = barrier

    @property
    def site(self) -> Meeting:
        return self

    def look(self, accounts: Sequence[Account]) -> Live:
        del accounts
        self.barrier.wait(60)
        return Live(at=0, host="h")


def test_contexts_are_queried_side_by_side(user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    barrier = threading.Barrier(3)
    (user.home / "config").mkdir(exist_ok=True)
    (user.home / "config" / "contexts.yaml").write_text("contexts: {a: {type: local}, b: {type: local}}\n")
    monkeypatch.setattr(connect, "backend", lambda _context: Meeting(barrier))
    assert set(asked(user, "a", "b", "local", "a")) == {"a", "b", "local"}


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--all", "local"], "--all and context names cannot be combined"),
        (["local", "other", "--allow", "n1"], "--allow needs exactly one context"),
        (["local", "--allow", "n1"], "node 'n1' is not on the avoided list of local"),
    ],
)
def test_mistakes(user: User, words: list[str], text: str) -> None:
    (user.home / "config").mkdir(exist_ok=True)
    (user.home / "config" / "contexts.yaml").write_text("contexts: {other: {type: local}}\n")
    answer = user.quick("cluster", *words)
    assert answer.code in (2, 3) and text in answer.err
