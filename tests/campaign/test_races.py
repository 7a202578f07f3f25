"""A few races under faults, and the judge; `make campaign` runs hundreds."""

from __future__ import annotations

import tempfile
from pathlib import Path

import msgspec
import pytest

from tests.campaign.race_faults import FAULTS, ROUNDS, Draw, Spec
from tests.campaign.race_judge import Item, Race, copies, judge, leftovers, strays
from tests.campaign.races import Round, campaign, draw
from yurt.lab import Lab

USUAL: Draw = {"pause": 4.0, "seconds": 1.5, "fraction": 0.3, "coin": False}
AROUND: Draw = {"after": "plain-0", "when": 0.0, "length": 3.0}
CHOSEN = [
    Spec("plain-0", ("alpha", "beta"), "arbiter", "plain", USUAL),
    Spec("killed-1", ("beta", "alpha"), "grant", "killed", USUAL),
    Spec("requeue-2", ("beta", "alpha"), "arbiter", "requeue", USUAL, requeue=True, rest=6.0),
    Spec("twins-3", ("alpha", "beta", "local"), "grant", "twins", USUAL, items=6, rest=0.2),
]


@pytest.mark.lab
@pytest.mark.timeout(400)
def test_a_race_has_one_winner(lab: Lab, yurt_home: Path, tmp_path: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="yr", dir="/tmp") as runtime:
        found = campaign(lab, tmp_path, Path(runtime), [Round("unlink", AROUND, CHOSEN)], patience=200)
    print((tmp_path / "log").read_text())
    assert found.wrong == []
    saved = {race.label for race in found.races}
    refused = {"requeue-2"}  # if it is submitted while the clusters do not reach each other
    assert {spec.label for spec in CHOSEN} - saved <= {"killed-1", *refused}
    started = {each.label for each in found.ledger}
    assert started <= saved and saved - started <= {"killed-1"}, "killed before it had candidates"


def test_the_same_seed_gives_the_same_races() -> None:
    assert draw(3, 20) == draw(3, 20) != draw(4, 20)
    rounds = draw(3, 400)
    assert {one.fault for one in rounds} == ROUNDS.keys()
    assert {spec.fault for one in rounds for spec in one.races} == FAULTS.keys()
    chosen = draw(3, 20, ["cut", "held"])
    assert {one.fault for one in chosen} == {"cut"}
    assert {spec.fault for one in chosen for spec in one.races} == {"held"}


def line(word: str, at: float, run: str = "a1", place: str = "alpha", *, restarts: int = 0, item: int = 0) -> str:
    return f"{word} {run} {restarts} {place}|held-1|{item}|/runs/{run} {at}\n"


DONE = Race("r1", "held-1", ["a1", "b1"], [Item(0, "completed", "", "alpha", "/runs/a1")])
ONCE = line("start", 1) + line("beat", 2) + line("end", 3)


@pytest.mark.parametrize(
    ("ledger", "wrong"),
    [
        (ONCE, []),
        ("", ["completed, but its code did not end"]),
        (line("start", 1) + line("beat", 2), ["completed, but its code did not end"]),
        (ONCE + line("start", 4, "b1", "beta"), ["started by several candidates"]),
        (ONCE + line("start", 2, "b1", "beta"), ["started by several candidates", "two copies ran at once"]),
        (
            ONCE + line("start", 4, "b1", "beta") + line("end", 5, "b1", "beta"),
            ["started by several candidates", "ended 2 times"],
        ),
        (line("start", 0) + line("start", 1, restarts=1) + line("end", 2, restarts=1), ["started 2 times"]),
        (line("start", 1, "b1", "beta") + line("end", 2, "b1", "beta"), ["the index shows alpha /runs/a1"]),
        (ONCE + line("start", 5, item=7), ["item 7 is not in the index"]),
        (ONCE + line("start", 5, "c1", "beta"), []),
    ],
)
def test_the_judge_finds_what_ran_twice_or_elsewhere(ledger: str, wrong: list[str]) -> None:
    found = judge(DONE, copies(ledger))
    assert len(found) == len(wrong)
    assert all(text in each for text, each in zip(wrong, found, strict=True))


def test_the_judge_allows_restarts_one_after_the_other() -> None:
    race = msgspec.structs.replace(DONE, restarts=True)
    again = line("start", 4, restarts=1) + line("end", 5, restarts=1)
    assert judge(race, copies(line("start", 1) + line("beat", 3) + again)) == []
    (overlap,) = judge(race, copies(line("start", 1) + line("beat", 3) + again + line("beat", 4.5)))
    assert "two copies ran at once" in overlap


@pytest.mark.parametrize(
    ("state", "excused", "wrong"),
    [
        ("running", "", "not over: running"),
        ("running", "cancelled", "not over: running"),
        ("cancelled", "", "did not complete: cancelled"),
        ("cancelled", "cancelled", ""),
    ],
)
def test_the_judge_finds_races_that_do_not_end(state: str, excused: str, wrong: str) -> None:
    items = [Item(0, "completed", "", "alpha", "/runs/a1"), Item(1, state, "", "beta", "")]
    race = msgspec.structs.replace(DONE, items=items, excused=excused)
    found = judge(race, copies(ONCE))
    assert len(found) == bool(wrong)
    assert all(f"item 1: {wrong}" in text for text in found)


def test_the_judge_finds_what_is_left() -> None:
    assert strays([DONE], copies(ONCE + line("start", 5, "c1", "beta"))) == [
        "held-1: the code of c1 ran on beta, but it is in no index"
    ]
    assert leftovers("beta", jobs=[], keys=[], folders=[]) == []
    found = leftovers("beta", jobs=["yurt-b1 7 PENDING"], keys=["ssh-ed25519 AA yurt-race-r1"], folders=["r1-key"])
    assert found == [
        "beta: a job is left: yurt-b1 7 PENDING",
        "beta: a key is left in authorized_keys: yurt-race-r1",
        "beta: a folder is left: r1-key",
    ]
