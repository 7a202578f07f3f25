"""The dated backups of the homes: listed, newest first, and removed when they are old."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

import pytest

from tests.homes.star import Star
from yurt.homes import backups, here
from yurt.homes import paths as home_paths
from yurt.homes.config import Homes
from yurt.homes.outcomes import shown
from yurt.homes.scripts import text
from yurt.testing.waiting import eventually
from yurt.transport.local import LocalHost

OLD, NEW, NEWEST = "20250102T030405Z-aa", "20260102T030405Z-bb", "20260102T030406Z-cc"
ODD = "odd\nname/it's *"


@pytest.fixture
def star(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Star:
    return Star(tmp_path, monkeypatch)


def keep(star: Star, place: str, dated: str, path: str, text: str = "before") -> Path:
    """Put a version into a dated folder."""
    file = star.backups(place) / dated / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


@pytest.mark.parametrize("gnu", [True, False], ids=["gnu", "macOS"])
def test_backups_of_all_places_are_listed_newest_first(star: Star, gnu: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LocalHost, "gnu", lambda _host: gnu)
    keep(star, "alpha", OLD, "a")
    keep(star, "local", NEWEST, "folder/a", "12345")
    keep(star, "alpha", NEW, ODD)
    (star.backups("alpha") / NEW / "link").symlink_to("elsewhere")
    (star.backups("alpha") / "mine").mkdir()  # a folder of the user
    found = backups.listed(star.places)
    assert [(each.place, each.dated, each.path, each.kind, each.size) for each in found.backups] == [
        ("local", NEWEST, "folder/a", "file", 5),
        ("alpha", NEW, "link", "link", 9),
        ("alpha", NEW, ODD, "file", 6),
        ("alpha", OLD, "a", "file", 6),
    ]
    assert [each.time for each in found.backups] == sorted((each.time for each in found.backups), reverse=True)
    assert found.backups[0].time == backups.moment_of(NEWEST) == 1767323046
    assert not found.more


def test_of_two_syncs_in_one_second_the_later_one_has_the_newest_backup(star: Star) -> None:
    names = ["-".join(here.moment()) for _ in range(300)]
    assert names == sorted(names)
    assert len(set(names)) == len(names)
    stamp = names[0].partition("-")[0]
    first, second = f"{stamp}-{names[0].partition('-')[2]}", f"{stamp}-fffff000"
    for dated in (second, first):  # whichever was made first on the disk
        keep(star, "alpha", dated, "a", dated)
    assert [each.dated for each in backups.listed(star.places).backups] == [second, first]
    assert backups.newest(star.places, "a")[1] == second


def test_a_list_is_limited_to_paths_to_a_time_and_in_length(star: Star) -> None:
    for number in range(7):
        keep(star, "alpha", NEW, f"many/{number}")
    keep(star, "alpha", OLD, "many/0")
    keep(star, "local", OLD, "one")
    assert [each.path for each in backups.listed(star.places, ["one", "no such"]).backups] == ["one"]
    assert len(backups.listed(star.places, ["many"]).backups) == 8
    assert [each.dated for each in backups.listed(star.places, ["many/0"]).backups] == [NEW, OLD]
    before = backups.listed(star.places, until=backups.moment_of(NEW) - 1)
    assert {each.dated for each in before.backups} == {OLD}
    some = backups.listed(star.places, most=3)
    assert len(some.backups) == 3
    assert some.more


def test_backups_are_shown(star: Star) -> None:
    keep(star, "alpha", NEW, "project/notes.txt", "x" * 1500)
    keep(star, "local", OLD, "a")
    done = star.yurt("home", "backups")
    assert done.code == 0
    assert [line.split()[-1] for line in done.out.splitlines()] == ["path", "project/notes.txt", "a"]
    assert "alpha  1.5 KB" in done.out
    listed = star.yurt("home", "backups", "--json", "--place", "local").json["data"]
    assert [(each["place"], each["path"]) for each in listed["backups"]] == [("local", "a")]
    assert star.yurt("home", "backups", "--at", "nonsense").err.startswith("yurt: --at: 'nonsense' is not a time\n")
    assert "is not one of the places" in star.yurt("home", "backups", "--place", "gamma").err
    assert "is not a path in the homes" in star.yurt("home", "backups", "../x").err


def test_a_folder_of_another_user_is_refused(star: Star) -> None:
    keep(star, "alpha", NEW, "a")
    os.chown(star.backups("alpha"), 12345, 12345)
    done = star.yurt("home", "backups", "--place", "alpha")
    assert done.code == 5
    assert "belongs to another user" in done.err
    star.write("alpha", "a", "x")
    (outcome,) = star.sync().outcomes
    assert outcome.code == 3
    assert str(star.backups("alpha")) in outcome.problem


def expire(star: Star, place: str, until: str) -> list[str]:
    """Remove the dated folders of a place up to a time, as each sync does; return their names."""
    answer = star.place(place).run(text("backups.sh") + 'backups_enter "" || return; backups_expire "$1"', until)
    assert not answer.errors
    return answer.text.split()


def test_old_backups_are_removed_once_a_day(star: Star) -> None:
    keep(star, "alpha", OLD, "folder/a")
    (star.backups("alpha") / OLD / "folder").chmod(0o500)
    keep(star, "alpha", NEW, "a")
    (star.backups("alpha") / "20240102-mine").mkdir()
    assert expire(star, "alpha", "20250102030405") == [OLD]
    assert {each.name for each in star.backups("alpha").iterdir()} == {NEW, "20240102-mine", ".expired"}
    keep(star, "alpha", OLD, "folder/a")
    assert expire(star, "alpha", "20250102030405") == []
    yesterday = time.time() - 2 * 86400
    os.utime(star.backups("alpha") / ".expired", (yesterday, yesterday))
    assert expire(star, "alpha", "20250102030404") == []
    os.utime(star.backups("alpha") / ".expired", (yesterday, yesterday))
    assert expire(star, "alpha", "20250102030405") == [OLD]
    assert expire(star, "local", "20250102030405") == []  # there are none


def test_a_removal_that_was_killed_is_completed(star: Star) -> None:
    keep(star, "alpha", f".expired-{OLD}", "folder/a")
    (star.backups("alpha") / f".expired-{OLD}/folder").chmod(0o500)
    assert backups.listed(star.places).backups == []
    expire(star, "alpha", "20250102030405")
    assert [each.name for each in star.backups("alpha").iterdir()] == [".expired"]


def test_a_sync_keeps_what_it_replaces_and_removes_old_backups(star: Star) -> None:
    for path in ("changed", ".config/deleted", "tree/deleted", "kept"):
        star.write("local", path, "before", age=10)
    keep(star, "alpha", OLD, "old")
    keep(star, "local", OLD, "old")
    star.profile("ignorenot = Path .config\n")
    assert star.sync().code == 0
    star.write("local", "changed", "after")
    shutil.rmtree(star.roots["local"] / ".config")
    shutil.rmtree(star.roots["local"] / "tree")
    assert star.sync().code == 0
    eventually(lambda: not (star.backups("alpha") / OLD).exists() and not (star.backups("local") / OLD).exists())
    found = backups.listed(star.places).backups
    assert {(each.place, each.path) for each in found} == {
        ("alpha", "changed"),
        ("alpha", ".config/deleted"),
        ("alpha", "tree/deleted"),
    }
    assert star.yurt("home", "restore", "tree").code == 0
    assert star.sync().code == 0
    assert star.read("local", "tree/deleted") == "before"


def test_a_path_as_it_is_shown_names_the_same_file() -> None:
    for name in (b"caf\xe9", b"\xff/\x80x", "é/ü".encode(), b"plain"):
        path = os.fsdecode(name)
        assert home_paths.relative(shown(path), Homes()) == path
