"""The tiers of a context: from the probe, from its profile, from its own keys; and the runs that are deleted next."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from yurt.errors import UserError
from yurt.model.context import Context
from yurt.model.facts import Facts, NodeFacts, Tier
from yurt.model.run import Run, Status
from yurt.model.storage import TierPlace
from yurt.storage.purge_dates import DAY
from yurt.storage.storage import upcoming
from yurt.storage.tiers import of_path, tiers, unknown_names
from yurt.store import Entry, Store

NODE = NodeFacts(node="n1", probed_at=1, internet=False, ssh=True, tmpdir=True)
FACTS = Facts(
    probed_at=1,
    user="me",
    host="login",
    variables={"HOME": "/home/me", "SCRATCH": "/scratch/me"},
    tiers=[
        Tier(name="home", variable="HOME", path="/home/me"),
        Tier(name="scratch", variable="SCRATCH", path="/scratch/me"),
    ],
    node=NODE,
)


def site(**keys: object) -> Context:
    return Context(name="big", type="slurm", slurm_url="me@big", **keys)  # type: ignore[arg-type]


def test_from_the_probe() -> None:
    home, scratch, tmpdir = tiers(site(), FACTS)
    assert (home.name, home.path, home.variable, home.shared) == ("home", "/home/me", "HOME", "all")
    assert (scratch.purge_days, scratch.quota) == (None, None)
    assert (tmpdir.path, tmpdir.variable, tmpdir.shared) == ("", "SLURM_TMPDIR", "node")
    assert tiers(site(), None) == []


def test_from_a_profile() -> None:
    found = {each.name: each for each in tiers(site(profile="alliance"), FACTS)}
    scratch = found["scratch"]
    assert (scratch.purge_days, scratch.purge_rule) == (60, "files neither accessed nor changed")
    assert scratch.backed_up is False and found["home"].backed_up is True and "20 TB" in scratch.said_quota


def test_from_the_context() -> None:
    keys = {"tiers": {"data": "$SCRATCH/data", "home": "/nas/me"}, "tier_purge": {"scratch": "30d"}}
    found = {each.name: each for each in tiers(site(**keys, tier_quota={"scratch": "1T 500000 files"}), FACTS)}
    assert list(found) == ["home", "scratch", "tmpdir", "data"]
    assert found["data"].path == "/scratch/me/data" and found["home"].path == "/nas/me"
    scratch = found["scratch"]
    assert (scratch.purge_days, scratch.quota, scratch.files_quota) == (30, 2**40, 500_000)
    assert of_path(list(found.values()), "/scratch/me/data/x") == found["data"]
    assert of_path(list(found.values()), "/scratch/me2") is None


@pytest.mark.parametrize(
    "keys",
    [
        {"tiers": {"data": "relative"}},
        {"tiers": {"Big Data": "/data"}},
        {"tier_purge": {"scratch": "soon"}},
        {"tier_purge": {"scratch": "36h"}},
        {"tier_quota": {"scratch": "much"}},
        {"tier_quota": {"scratch": ""}},
        {"tier_quota": {"scratch": "1.2.3T"}},
    ],
)
def test_wrong_values(keys: dict[str, object]) -> None:
    with pytest.raises(UserError) as raised:
        tiers(site(**keys), FACTS)
    (key,) = keys
    assert (
        raised.value.message.startswith(f"{key} of context 'big': the value for ")
        and "for example" in raised.value.hint
    )


def test_only_days_and_only_known_tiers() -> None:
    with pytest.raises(UserError, match="only days are allowed, such as 3d"):
        tiers(site(tier_purge={"scratch": "36h"}), FACTS)
    context = site(tier_purge={"nosuch": "3d", "scratch": "3d"})
    (warning,) = unknown_names(context, tiers(context, FACTS))
    assert "tier_purge of context 'big' names the tier 'nosuch', which it does not have; it has: " in warning


def test_runs_that_are_deleted_next(tmp_path: Path) -> None:
    scratch = TierPlace(name="scratch", path="/scratch/me", purge_days=60)

    def entry(name: str, folder: str, *, final: bool = True, ended: float = 0.0, **more: Any) -> Entry:
        run = Run(
            id=name,
            context="big",
            context_type="slurm",
            project="p",
            source="/p",
            created=0,
            command=["x"],
            folder=folder,
        )
        fields = {"started": 0.5, "ended": ended or None, **more}
        return Entry(run, Status(state="completed" if final else "running", **fields))

    entries = [
        entry("late", "/scratch/me/yurt/late", ended=20 * DAY),
        entry("soon", "/scratch/me/yurt/soon", ended=5 * DAY),
        entry("gone", "/scratch/me/yurt/gone", ended=1.0),
        entry("runs", "/scratch/me/yurt/runs", final=False),
        entry("home", "/home/me/yurt/home", ended=5 * DAY),
        entry("sent", ""),
        entry("refused", "/scratch/me/yurt/refused", ended=5 * DAY, started=None),
        entry("empty", "/scratch/me/yurt/empty", ended=5 * DAY, result_files=0),
        entry("pruned", "/scratch/me/yurt/pruned", ended=5 * DAY),
    ]
    store = Store(str(tmp_path / "yurt.db"))
    store.note_gone(["pruned"], 1)
    found = upcoming(store, entries, [scratch], now=61 * DAY)
    assert [(each.run, each.at) for each in found] == [("soon", 65 * DAY), ("late", 80 * DAY)]
