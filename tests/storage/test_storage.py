"""`yurt storage`: this machine, two clusters at once, a site that does not respond."""

from __future__ import annotations

import pytest

from tests.laptop import Laptop
from tests.user import User
from yurt.lab import Lab


def test_this_machine(user: User) -> None:
    found = user.quick("storage", "--json")
    assert found.code == 0 and found.json["kind"] == "storage"
    (local,) = found.json["data"]
    (home,) = [each for each in local["tiers"] if each["place"]["name"] == "home"]
    assert home["place"]["shared"] == "here" and home["use"]["there"] and home["use"]["total"] > home["use"]["free"]
    shown = user.quick("storage").out.splitlines()
    assert shown[0].split()[0] == "tier" and shown[1].startswith("home")


def test_settings(user: User) -> None:
    contexts = user.home / "config" / "contexts.yaml"
    contexts.parent.mkdir(exist_ok=True)
    contexts.write_text("contexts:\n  here: {type: local, tier_quota: {home: 1.5T}}\n")
    assert "quota 1.6 TB" in user.quick("storage", "here").out
    contexts.write_text("contexts:\n  here: {type: local, tier_quota: {home: much}}\n")
    found = user.quick("storage", "here")
    assert found.code == 2 and "tier_quota of context 'here': the value for 'home' is not valid" in found.err


@pytest.mark.lab
def test_two_clusters(laptop: Laptop, lab: Lab) -> None:
    contexts = laptop.home / "config" / "contexts.yaml"
    text = contexts.read_text()
    run = laptop.run("alpha", "--wait", "sh", "-c", 'echo 1 > "$YURT_OUTPUTS/one"')["run"]["id"]
    try:
        extra = (
            "    tier_purge: {scratch: 30d}\n    tiers: {data: $SCRATCH/data}\n    storage_report: echo 3 of 5 used\n"
        )
        head, _alpha, tail = text.partition("  alpha:\n")
        contexts.write_text(f"{head}  alpha:\n{extra}{tail}")
        found = laptop.quick("storage", "alpha", "beta", "--json")
        assert found.code == 0, found
        alpha, beta = found.json["data"]
        tiers = {each["place"]["name"]: each for each in alpha["tiers"]}
        assert tiers["scratch"]["yurt"] and tiers["scratch"]["place"]["purge_days"] == 30
        assert tiers["scratch"]["use"]["writable"] and not tiers["data"]["use"]["there"]
        assert alpha["report"] == "3 of 5 used" and beta["report"] == "" and beta["tiers"]
        assert run in [each["run"] for each in alpha["purged"]] and beta["purged"] == []
        shown = laptop.quick("storage", "alpha").out
        assert "deleted next: run" in shown and "in 29 days" in shown and "3 of 5 used" in shown
        lab.faults.cut("beta")
        found = laptop.quick("storage", "alpha", "beta")
        assert found.code == 4 and "cannot query beta" in found.err and "scratch" in found.out
    finally:
        lab.faults.heal("beta")
        contexts.write_text(text)
