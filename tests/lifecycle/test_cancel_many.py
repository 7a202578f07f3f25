"""cancel of several runs: one request for all runs of a site, and the states that they have there."""

from __future__ import annotations

import pytest

from tests.lab.conftest import Ssh
from tests.laptop import Laptop
from yurt.lab import Lab
from yurt.testing.waiting import eventually
from yurt.transport import counts

pytestmark = pytest.mark.lab


def submitted(laptop: Laptop, *words: str) -> str:
    run: str = laptop.run("alpha", "--time", "5m", *words)["run"]["id"]
    return run


def test_one_request(shared_laptop: Laptop, lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    laptop = shared_laptop
    runs = [submitted(laptop, "--hold", "sleep", "300") for _each in range(3)]
    runs += [submitted(laptop, "--hold", "--grid", "seed=1..2", "sleep", "300")]
    try:
        sent: list[str] = []
        monkeypatch.setattr(counts, "note_command", sent.append)
        done = laptop.quick("cancel", *runs, "--json")
        assert sent == ["alpha"]
    finally:
        laptop.quick("cancel", *runs)
    assert done.code == 0, done
    assert [(each["id"], each["delivered"]) for each in done.json["data"]] == [(run, True) for run in runs]
    assert {each["state"] for each in done.json["data"]} == {"cancelled"}
    assert all(run not in Ssh(lab)("alpha", "squeue -h -u alice -o %j") for run in runs)


def test_states_of_the_site(shared_laptop: Laptop, lab: Lab) -> None:
    laptop, ssh = shared_laptop, Ssh(lab)
    over, begun = submitted(laptop, "true"), submitted(laptop, "sh", "-c", "echo hi; exec sleep 300")
    folder = laptop.quick("show", begun, "--json", "--cached").json["data"]["run"]["folder"].rpartition("/")[0]
    try:
        ready = f"[ ! -e {folder}/{over}/exit.json ] || [ ! -s {folder}/{begun}/out.log ] || echo both"
        eventually(lambda: "both" in ssh("alpha", ready))
        done = laptop.quick("cancel", over, begun, "--json")
    finally:
        laptop.quick("cancel", begun)
    first, second = done.json["data"]
    assert (first["state"], first["note"]) == ("completed", "it had already finished")
    assert second["state"] in ("running", "cancelled"), "not queued, which the index knew last"
    assert laptop.quick("wait", begun, "--timeout", "60").code == 1
