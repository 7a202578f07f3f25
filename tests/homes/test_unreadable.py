"""Files in a home that the user cannot read: they are named, with the place, and can be skipped."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.homes.star import Login, Star
from yurt.homes import gate, output, unreadable
from yurt.homes.outcomes import Outcome, Skipped

WHY = "cannot be read on alpha: permission denied"


@pytest.fixture
def star(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Star:
    """Homes, of which alpha's is read by a user whom permissions apply to, also if that is root."""
    made = Star(tmp_path, monkeypatch)
    argv = Login.argv
    drop = ["setpriv", "--inh-caps=-all", "--bounding-set=-dac_override,-dac_read_search"]
    if os.geteuid() == 0:
        monkeypatch.setattr(Login, "argv", lambda login, command: [*drop, *argv(login, command)])
    return made


def hide(star: Star, path: str) -> None:
    file = star.roots["alpha"] / path
    file.chmod(0)


def only(star: Star) -> Outcome:
    (outcome,) = star.sync().outcomes
    return outcome


def test_a_file_that_cannot_be_read_is_named_everywhere(star: Star) -> None:
    star.write("alpha", "project/secret key", "x")
    star.write("alpha", "project/other", "x")
    star.write("local", "here", "x")
    hide(star, "project/secret key")
    for _again in range(2):  # first in a new folder, of which Unison names only the folder
        outcome = only(star)
        assert outcome.failed == [Skipped("project/secret key", WHY, unreadable=True)], outcome
        assert (outcome.code > 0, outcome.conflicts) == (True, [])
    assert star.read("local", "project/other") == star.read("alpha", "here") == "x"
    assert gate.problem(outcome) == f"'project/secret key' was not synced: {WHY}"
    assert f"'project/secret key' was not synced: {WHY}" in " ".join(star.yurt("home", "status").out.split())
    shown = star.yurt("home", "sync")
    assert shown.code == 1 and f"not synced: project/secret key: {WHY}" in shown.out, shown
    assert "`yurt home profile --skip-unreadable`" in shown.out


def test_files_that_cannot_be_read_can_be_skipped(star: Star) -> None:
    star.write("alpha", "folder/inside", "x")
    star.write("alpha", "bad\udcff\nname", "x")
    star.write("alpha", "readable", "x")
    hide(star, "bad\udcff\nname")
    hide(star, "folder")
    assert star.yurt("home", "profile", "--skip-unreadable").code == 0
    for _again in range(2):
        done = star.yurt("home", "sync", "--yes")
        assert done.code == 0, done
        assert f"skipped 'folder': it {WHY}" in done.err and "bad" in done.err, done
    assert star.read("local", "readable") == "x"
    assert star.yurt("home", "profile", "--no-skip-unreadable").code == 0
    assert star.yurt("home", "sync").code == 1
    star.roots["alpha"].joinpath("folder").chmod(0o700)
    star.roots["alpha"].joinpath("bad\udcff\nname").chmod(0o600)
    assert star.yurt("home", "sync").code == 0
    assert star.read("local", "folder/inside") == "x"


def test_a_home_that_cannot_be_read_is_not_taken_for_an_empty_one(star: Star) -> None:
    star.write("alpha", "a", "x", age=100)
    only(star)
    star.roots["alpha"].chmod(0o300)
    outcome = only(star)
    assert (outcome.problem_code, outcome.problem_exit) == ("site-refused", 5), outcome
    assert "it cannot be created, read or written" in outcome.problem
    star.roots["alpha"].chmod(0o700)
    assert only(star).code == 0


def test_a_folder_that_failed_for_another_reason_keeps_it(star: Star) -> None:
    full, partly = Skipped("full", "No space left on device"), Skipped("partly", output.PARTLY)
    found = unreadable._replaced([full, partly], star.place("alpha"), ["full/a", "partly/a", "partly.txt"])
    assert found == [full, Skipped("partly/a", WHY, unreadable=True)]


def test_skipping_does_not_hide_other_failures(star: Star) -> None:
    star.write("local", "a", "x", age=100)
    only(star)
    assert star.yurt("home", "profile", "--skip-unreadable").code == 0
    star.roots["alpha"].chmod(0o500)
    star.write("local", "b", "x")
    outcome = only(star)
    assert outcome.code == 2 and [each.path for each in outcome.failed] == ["b"], outcome
    star.roots["alpha"].chmod(0o700)
    assert only(star).code == 0
