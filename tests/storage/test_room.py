"""What still fits into a tier, which tier lasts, when results are deleted, what an amount means."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from yurt.errors import NotFoundError, RefusedError, UserError
from yurt.lifecycle.outbox.room import program
from yurt.model.files import Measures
from yurt.model.quotas import read_amount
from yurt.model.run import Run, Status
from yurt.model.storage import Quota, TierPlace, TierUse
from yurt.storage.keep import candidates, check_not_there, chosen
from yurt.storage.purge_dates import DAY, expiry
from yurt.storage.room import Room, lacking, room
from yurt.store import Copy, Entry, Store
from yurt.store.site_copies import PurgeRule, SiteCopy

GB = 10**9


@pytest.mark.parametrize(
    ("quota", "place", "expected"),
    [
        (None, {}, Room(50 * GB, 1000)),
        (Quota(used=10 * GB, limit=30 * GB, files=5, files_limit=9), {}, Room(20 * GB, 4)),
        (Quota(used=40 * GB, limit=30 * GB, files=5), {}, Room(0, 1000)),
        (Quota(used=10 * GB), {"quota": 12 * GB, "files_quota": 7}, Room(2 * GB, 7)),
        (None, {"quota": 3 * GB}, Room(3 * GB, 1000)),
        (None, {"quota": 90 * GB}, Room(50 * GB, 1000)),
    ],
)
def test_room(quota: Quota | None, place: dict[str, int], expected: Room) -> None:
    use = TierUse(name="scratch", there=True, free=50 * GB, files_free=1000, quota=quota)
    assert room(TierPlace(name="scratch", path="/s", **place), use) == expected  # type: ignore[arg-type]
    assert room(TierPlace(name="scratch", path="/s"), TierUse(name="scratch")) == Room()


def test_what_does_not_fit() -> None:
    assert lacking(Room(12 * GB, 10), 20 * GB, 3) == ("12.0 GB free", "20.0 GB")
    assert lacking(Room(12 * GB, 10), GB, 1500) == ("room for 10 files", "1,500 files")
    assert lacking(Room(12 * GB, 10), GB, 10) == lacking(Room(), GB, 10) == ("", "")


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("20G", (20 << 30, None)),
        ("1000 files", (None, 1000)),
        ("1.5 TiB, 7 files", (3 << 39, 7)),
        ("20", None),
        ("", None),
        ("much", None),
    ],
)
def test_amounts(text: str, amount: tuple[int | None, int | None] | None) -> None:
    assert read_amount(text) == amount


def test_the_program_of_a_command() -> None:
    assert program(["python", "-m", "train", "--lr", "1"]) == ["python", "-m", "train"]
    assert program(["train.py", "lr=1"]) == ["train.py"]


HOME, PROJECT = TierPlace(name="home", path="/h"), TierPlace(name="project", path="/p")
SCRATCH = TierPlace(name="scratch", path="/s", purge_days=30)
KNOWN = [HOME, PROJECT, SCRATCH, TierPlace(name="tmpdir", path="")]


def test_the_tier_that_lasts() -> None:
    assert candidates("big", KNOWN, "") == [PROJECT, HOME]
    assert candidates("big", KNOWN, "scratch") == [SCRATCH]
    with pytest.raises(NotFoundError, match="no storage tier 'tmpdir'; it has: home, project, scratch"):
        candidates("big", KNOWN, "tmpdir")
    uses = [TierUse(name="project"), TierUse(name="home", there=True, writable=True)]
    assert chosen("big", [PROJECT, HOME], uses, "")[0] == HOME
    with pytest.raises(RefusedError, match="cannot be written to"):
        chosen("big", [PROJECT], uses, "fetch it")
    with pytest.raises(RefusedError, match="no tier of big is known to last"):
        chosen("big", [], uses, "fetch it")
    check_not_there("big", KNOWN, "/s/yurt/x", "run x", "")
    with pytest.raises(UserError, match="run x is on project, from which big deletes nothing"):
        check_not_there("big", KNOWN, "/p/x", "run x", "")
    with pytest.raises(UserError, match="run x is on scratch already"):
        check_not_there("big", KNOWN, "/s/x", "run x", "scratch")


def entry(name: str, *, ended: float = 0.0, files: int | None = None, context: str = "big") -> Entry:
    run = Run(
        id=name,
        context=context,
        context_type="slurm",
        project="p",
        source="/p",
        created=0,
        command=["x"],
        folder=f"/s/yurt/{name}",
    )
    return Entry(run, Status(state="completed", started=ended - 1, ended=ended, result_files=files))


def test_when_results_are_deleted(tmp_path: Path) -> None:
    store = Store(str(tmp_path / "yurt.db"))
    rules = [PurgeRule("big", "/s", 30), PurgeRule("big", "/s/yurt/lasting", 0)]
    ended = 100 * DAY
    entries = [
        entry("late", ended=ended + 15 * DAY),
        entry("soon", ended=ended + 5 * DAY),
        entry("past", ended=DAY),
        entry("empty", ended=ended, files=0),
        entry("other", ended=ended, context="small"),
        entry("lasting/x", ended=ended),
        entry("kept", ended=ended),
        entry("fetched", ended=ended),
        entry("partly", ended=ended),
        entry("lost", ended=ended),
        entry("pruned", ended=ended),
        entry("nothing", ended=ended),
    ]
    running = entry("running", ended=ended)
    entries.append(Entry(running.run, msgspec.structs.replace(running.status, state="running")))
    store.note_site_copy("kept", SiteCopy(tier="project", path="/p/yurt-kept/p/kept", at=1))
    some = Measures(outputs="9:1:1", checkpoints="")
    store.note_fetched("fetched", Copy(target=bytes(tmp_path), at=1, measures=some, files=b"x"))
    store.note_fetched("partly", Copy(target=bytes(tmp_path), at=1, measures=Measures("", "", "")))
    store.note_fetched("lost", Copy(target=bytes(tmp_path / "gone"), at=1, measures=some, files=b"x"))
    store.note_fetched("nothing", Copy(target=bytes(tmp_path / "gone"), at=1, measures=Measures(checkpoints="")))
    store.note_gone(["pruned"], 1)
    found = expiry(store, entries, rules, now=ended + 29.5 * DAY)
    assert found == {
        "soon": ended + 35 * DAY,
        "past": 31 * DAY,
        "partly": ended + 30 * DAY,
        "lost": ended + 30 * DAY,
    }
    assert store.site_copy("kept") == SiteCopy(tier="project", path="/p/yurt-kept/p/kept", at=1)
    assert store.site_copy("soon") is None


def test_rules_are_read_again_only_if_files_changed(tmp_path: Path) -> None:
    store = Store(str(tmp_path / "yurt.db"))
    rules = [PurgeRule("big", "/s", 30)]
    assert store.purge_rules("1") is None
    store.note_purge_rules("1", rules)
    assert store.purge_rules("1") == rules and store.purge_rules("2") is None
    store.note_purge_rules("2", [])
    assert store.purge_rules("2") == [] and store.purge_rules("1") is None
