"""The guard of a first sync: what would be copied, whether it fits, and the question."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.homes.star import Star
from yurt.errors import RefusedError, UnreachableError, UserError
from yurt.homes import guard, ignores, quota
from yurt.homes import guard_text as home_guard
from yurt.homes.guard import Amount, Survey
from yurt.homes.profile import merged
from yurt.transport.local import LocalHost

PROFILE = merged(b"ignorenot = Path .config\nignore = Path project/{data,out*}\nignore = Regex .*secret.*\n").decode()


@pytest.fixture
def star(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Star:
    return Star(tmp_path, monkeypatch)


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("*.o", ["*.o"]),
        ("{a,b}", ["a", "b"]),
        ("x.{a,b{1,2}}", ["x.a", "x.b1", "x.b2"]),
        ("{a,}x{1,2}", ["ax1", "ax2", "x1", "x2"]),
        (r"\{a,b\}", [r"\{a,b\}"]),
        ("{open", ["{open"]),
    ],
)
def test_braces_of_unison_are_expanded(pattern: str, expected: list[str]) -> None:
    assert ignores.expanded(pattern) == expected


@pytest.mark.parametrize("gnu", [True, False], ids=["gnu", "macOS"])
def test_the_survey_counts_what_the_profile_does_not_ignore(
    star: Star, gnu: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LocalHost, "gnu", lambda _host: gnu)
    for path in ("notes", "project/a.py", "project/sub/b.py", "odd\nname/it's", ".config/tool/settings"):
        star.write("alpha", path, "12345")
    ignored = ("project/data/x", "project/output/x", ".cache/x", ".ssh/id", "project/.venv/x", ".unison.a.unison.tmp")
    for path in (*ignored, ".config/yurt/contexts.yaml", "scratch/x", "project/run.sock"):
        star.write("alpha", path, "ignored")
    star.write("alpha", "project/sub/data/kept", "12345")  # the rule is about the path project/data
    star.write("local", "project/a.py", "12345")

    found = guard.survey(star.places, PROFILE)

    assert {
        each.name: {place: (amount.files, amount.size) for place, amount in each.places.items()}
        for each in found.folders
    } == {
        "": {"alpha": (1, 5)},
        "project": {"alpha": (3, 15), "local": (1, 5)},
        "odd?name": {"alpha": (1, 5)},
        ".config": {"alpha": (1, 5)},
    }
    assert found.at_least == {"local": Amount(5, 25), "alpha": Amount(0, 0)}
    assert found.at_most == {"local": Amount(6, 30), "alpha": Amount(1, 5)}
    assert found.warnings == ["the size includes what this rule ignores: ignore = Regex .*secret.*"]
    assert (found.room["alpha"].free or 0) > 0


def test_equal_folders_are_not_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    star = Star(tmp_path, monkeypatch, ["alpha", "beta"])
    for place in ("alpha", "beta"):
        star.write(place, "same/a", "12345")
    star.write("alpha", "other/of-alpha", "12345")
    star.write("beta", "other/of-beta", "12345")
    found = guard.survey(star.places, "")
    assert found.at_most == {"local": Amount(3, 15), "alpha": Amount(1, 5), "beta": Amount(1, 5)}
    assert found.at_least == {"local": Amount(2, 10), "alpha": Amount(0, 0), "beta": Amount(0, 0)}


def test_a_folder_that_does_not_exist_yet_is_empty(star: Star) -> None:
    star.roots["local"].rmdir()
    star.write("alpha", "a", "1")
    found = guard.survey(star.places, "")
    assert found.at_least["local"] == Amount(1, 1)
    assert found.room["local"].free


def test_the_user_is_asked_with_the_survey(star: Star) -> None:
    star.write("alpha", "a", "123")
    asked: list[Survey] = []

    def refuse(found: Survey) -> bool:
        asked.append(found)
        return False

    with pytest.raises(UserError, match="needs your confirmation"):
        guard.check(star.places, PROFILE, refuse)
    assert asked[0].at_least["local"] == Amount(1, 3)
    assert guard.check(star.places, PROFILE, lambda _found: True).folders == asked[0].folders


def test_what_does_not_fit_into_the_quota_is_refused_without_a_question(
    star: Star, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`quota` of this machine allows 1 MB more; `df` names the file system that it is about."""
    star.write("alpha", "large", "x" * 2_000_000)
    programs = tmp_path / "bin"
    programs.mkdir()
    disk = os.popen("df -P .").read().splitlines()[-1].split()[0]
    script = f"#!/bin/sh\necho Disk quotas for user\necho Filesystem blocks quota\necho {disk} 1000 2000 3000 5 0 0\n"
    (programs / "quota").write_text(script)
    (programs / "quota").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    with pytest.raises(RefusedError, match=r"writes 2\.0 MB to local, but only 1\.0 MB of your quota") as raised:
        guard.check(star.places, "", lambda _found: pytest.fail("asked"))
    assert raised.value.code == "quota-full"


DF = "nas:/home  1000000 900000 {} 90% /home/all users"


@pytest.mark.parametrize(
    ("sections", "expected"),
    [
        ({"blocks": [DF.format(100)]}, quota.Room(free=102_400)),
        ({"inodes": [DF.format(7)]}, quota.Room(free_files=7)),
        ({"inodes": ["/dev/sda1 0 0 0 - /home"]}, quota.Room()),
        ({"blocks": ["df: no such file"]}, quota.Room()),
        (
            {"blocks": [DF.format(9)], "quota": ["nas:/home 5 8 9 1 2 3"]},
            quota.Room(free=9216, quota=3072, quota_files=1),
        ),
        ({"blocks": [DF.format(9)], "quota": ["/dev/sda1 5 8 9 1 2 3"]}, quota.Room(free=9216)),
        ({"lustre": ["/lustre/home 12* 8 9 6days 1 0 0"]}, quota.Room(quota=-4096)),
    ],
)
def test_room_is_read_from_df_and_quota(sections: dict[str, list[str]], expected: quota.Room) -> None:
    assert quota.read(sections) == expected


@pytest.mark.parametrize(
    ("room", "words"),
    [
        (quota.Room(), ""),
        (quota.Room(free=10**9, quota=10**9, free_files=100, quota_files=100), ""),
        (quota.Room(free=10**6), "only 1.0 MB are free there"),
        (quota.Room(quota=-1), "your quota there is used up"),
        (quota.Room(quota_files=99), "your quota there allows only 99 more"),
        (quota.Room(free_files=0), "the disk there has room for only 0 more"),
    ],
)
def test_a_shortage_is_said_in_words(room: quota.Room, words: str) -> None:
    refused = quota.shortage("alpha", room, 5_000_000, 100)
    assert (refused is None) == (not words)
    assert refused is None or words in refused.message


def test_the_survey_is_shown_as_a_table_and_a_sentence(star: Star, capsys: pytest.CaptureFixture[str]) -> None:
    for number in range(25):
        star.write("alpha", f"folder{number:02}/a", "x" * (2500 - 100 * number))
    star.write("alpha", "note", "x")
    star.write("local", "folder00/b", "xyz")
    home_guard.show(guard.survey(star.places, PROFILE))
    *table, sentence, warning = capsys.readouterr().out.splitlines()
    assert [line.split() for line in (table[0], table[1], *table[-2:])] == [
        ["folder", "on", "local", "on", "alpha"],
        ["folder00/", "3", "B,", "1", "file", "2.5", "KB,", "1", "file"],
        ["6", "smaller", "folders", "1.5", "KB,", "6", "files"],
        ["all", "3", "B,", "1", "file", "33", "KB,", "26", "files"],
    ]
    assert len(table) == 23
    assert sentence == (
        "the first sync copies at most 33 KB (26 files) to local and at most 3 B (1 file) to alpha; "
        "it deletes and overwrites nothing"
    )
    assert warning.startswith("warning: the size includes what this rule ignores")


def test_a_new_place_that_cannot_be_reached_does_not_stop_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    star = Star(tmp_path, monkeypatch, ["alpha", "beta"])
    star.write("local", "a", "x")

    def silent(_command: str) -> list[str]:
        raise UnreachableError("beta does not respond", code="connection-lost")

    monkeypatch.setattr(star.place("beta").host, "argv", silent)
    done = star.yurt("home", "sync", "--yes")
    assert done.code == 4 and "beta does not respond" in done.out, done
    assert star.read("alpha", "a") == "x"
    assert star.yurt("home", "sync", "beta", "--yes").code == 4
