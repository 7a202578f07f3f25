"""A few rounds of homes in sync under faults, and the judge; `make campaign` performs hundreds."""

from __future__ import annotations

import tempfile
from pathlib import Path
from random import Random

import pytest

from tests.campaign import home_judge as judge
from tests.campaign.home_faults import FAULTS, Draw
from tests.campaign.home_judge import State
from tests.campaign.home_trees import Editor, Entry, Place
from tests.campaign.homes import Episode, campaign, draw
from yurt.lab import Lab

USUAL: Draw = {"edits": 6, "delay": 0.1, "fraction": 0.3, "slow": False, "resolve": "", "one": False, "kill": False}
CHOSEN: list[tuple[str, Draw]] = [
    ("yurt", {"moment": "arriving", "site": "alpha", "resolve": "--both"}),
]


@pytest.mark.lab
def test_no_version_is_lost(lab: Lab, yurt_home: Path, tmp_path: Path) -> None:
    episodes = [Episode("local", fault, number, {**USUAL, **own}) for number, (fault, own) in enumerate(CHOSEN)]
    with tempfile.TemporaryDirectory(prefix="yr", dir="/tmp") as runtime:
        found = campaign(lab, tmp_path, Path(runtime), episodes)
    print((tmp_path / "log").read_text())
    assert found.wrong == []
    assert len(found.cases) == len(CHOSEN)


def test_the_same_seed_gives_the_same_rounds() -> None:
    assert draw(3, 20) == draw(3, 20) != draw(4, 20)
    assert {episode.fault for episode in draw(3, len(FAULTS))} == {*FAULTS}
    assert {episode.fault for episode in draw(3, 9, ["cut"])} == {"cut"}


def file(version: str, mode: int = 0o644) -> Entry:
    return Entry("file", mode, version)


def test_the_judge_finds_a_version_without_a_backup() -> None:
    before = State({"local": {"a": file("1")}, "alpha": {"a": file("2")}}, {"local": set(), "alpha": {("b", "0")}})
    kept = State({"local": {"a": file("2")}, "alpha": {"a": file("2")}}, {"local": {("a", "1")}, "alpha": {("b", "0")}})
    assert judge.lost(before, kept) == []
    assert judge.overwritten(before, kept, {("alpha", "a")}) == []
    assert judge.overwritten(before, kept, {("local", "a")}) == ["local: the new version of 'a' was overwritten"]
    gone = State(kept.trees, {"local": set(), "alpha": set()})
    first, second = judge.lost(before, gone)
    assert "local: file 'a' was replaced without a backup there; VERSION GONE (1)" in first
    assert second == "alpha: the backup of 'b' is gone (0)"


def test_the_judge_finds_homes_that_differ() -> None:
    trees = {"local": {"a": file("1"), "d": Entry("folder", 0o755, "")}, "alpha": {"a": file("1", 0o600)}}
    state = State(trees, {})
    assert [text.partition(" ")[0] for text in judge.unequal(state, [])] == ["'a'", "'d'"]
    assert judge.unequal(state, ["a", "d"]) == []


def test_the_judge_finds_half_a_file(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    owner = tmp_path.stat()
    place = Place("local", tmp_path / "home", tmp_path / "unison", (owner.st_uid, owner.st_gid))
    editor = Editor([place, place], Random(1), set())
    editor.edit(40)
    state = judge.look([place])
    assert judge.unknown(state, editor) == []
    (path,) = [each for each, entry in state.trees["local"].items() if entry.kind == "file"][:1]
    with (place.root / path).open("r+b") as content:
        content.truncate(3)
    assert len(judge.unknown(judge.look([place]), editor)) == 1
    (place.root / ".unison.a.1.unison.tmp").write_text("part")
    assert len(judge.unknown(judge.look([place]), editor)) == 1
