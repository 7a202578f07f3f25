"""Versions from the dated backups: restored where they were, and what they replace goes to a new backup."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.homes.star import Star
from tests.homes.test_backups import NEW, NEWEST, ODD, OLD, keep
from yurt.homes import backups


@pytest.fixture
def star(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Star:
    return Star(tmp_path, monkeypatch)


def saved(star: Star, place: str) -> dict[str, str]:
    """Return the files of dated folders that a restore has made."""
    return {
        str(file.relative_to(folder)): os.readlink(file) if file.is_symlink() else file.read_text()
        for folder in star.backups(place).glob("*-restore*")
        for file in folder.rglob("*")
        if not file.is_dir() or file.is_symlink()
    }


@pytest.mark.parametrize("path", ["a", "deep/er/a", ODD, "--dash", "trailing ", "\udcff"])
def test_a_file_is_restored_and_what_was_there_is_kept(star: Star, path: str) -> None:
    old = keep(star, "alpha", NEW, path, "before")
    old.chmod(0o640)
    os.utime(old, (10**9, 10**9))
    star.write("alpha", path, "now")
    done = backups.restore(star.place("alpha"), NEW, path)
    target = star.roots["alpha"] / path
    assert target.read_text() == "before"
    assert (target.stat().st_mode & 0o777, target.stat().st_mtime) == (0o640, 10**9)
    assert saved(star, "alpha") == {path: "now"}
    assert done.files == 1
    assert done.replaced
    assert old.read_text() == "before"
    assert not list(star.roots["alpha"].rglob("*.unison.tmp"))


def test_a_deleted_file_a_link_and_a_folder_are_restored(star: Star) -> None:
    keep(star, "alpha", NEW, "gone/a", "before")
    (star.backups("alpha") / NEW / "link").symlink_to("nowhere")
    keep(star, "alpha", NEW, "tree/.hidden", "1").chmod(0o600)
    keep(star, "alpha", NEW, "tree/sub/b", "2")
    (star.backups("alpha") / NEW / "tree/sub").chmod(0o750)
    alpha = star.place("alpha")
    assert backups.restore(alpha, NEW, "gone/a").replaced == ""
    backups.restore(alpha, NEW, "link")
    assert backups.restore(alpha, NEW, "tree").files == 2
    root = star.roots["alpha"]
    assert star.read("alpha", "gone/a") == "before"
    assert os.readlink(root / "link") == "nowhere"
    assert (root / "tree/sub").stat().st_mode & 0o777 == 0o750
    assert star.read("alpha", "tree/.hidden") + star.read("alpha", "tree/sub/b") == "12"
    assert saved(star, "alpha") == {}


def test_a_folder_keeps_the_files_that_the_backup_does_not_have(star: Star) -> None:
    """The backup of a sync contains only the files that the sync changed."""
    keep(star, "alpha", NEW, "tree/a", "before")
    keep(star, "alpha", NEW, "tree/sub/..odd", "before")
    star.write("alpha", "tree/a", "now")
    star.write("alpha", "tree/other", "other")
    backups.restore(star.place("alpha"), NEW, "tree")
    assert star.read("alpha", "tree/a") == "before"
    assert star.read("alpha", "tree/sub/..odd") == "before"
    assert star.read("alpha", "tree/other") == "other"
    assert saved(star, "alpha") == {"tree/a": "now"}


def test_files_folders_and_links_replace_each_other(star: Star) -> None:
    root = star.roots["alpha"]
    alpha = star.place("alpha")
    keep(star, "alpha", NEW, "file", "1")
    star.write("alpha", "file/in", "folder now")
    keep(star, "alpha", NEW, "folder/in", "2")
    star.write("alpha", "folder", "file now")
    keep(star, "alpha", NEW, "plain", "3")
    star.write("alpha", "target/in", "not touched")
    (root / "plain").symlink_to("target")
    for path in ("file", "folder", "plain"):
        backups.restore(alpha, NEW, path)
    assert star.read("alpha", "file") + star.read("alpha", "folder/in") + star.read("alpha", "plain") == "123"
    assert saved(star, "alpha") == {"file/in": "folder now", "folder": "file now", "plain": "target"}
    assert [each.name for each in (root / "target").iterdir()] == ["in"]


def test_a_link_above_the_path_is_not_followed(star: Star, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    keep(star, "alpha", NEW, "folder/a")
    (star.roots["alpha"] / "folder").symlink_to(elsewhere)
    done = star.yurt("home", "restore", "folder/a")
    assert done.code == 5
    assert "folder is a symbolic link" in done.err
    assert not list(elsewhere.iterdir())


def test_the_newest_backup_is_restored_where_it_was(star: Star) -> None:
    keep(star, "alpha", OLD, "a", "oldest")
    keep(star, "alpha", NEW, "a", "old")
    keep(star, "local", NEWEST, "a", "new")
    done = star.yurt("home", "restore", "a")
    assert done.code == 0, done
    assert done.out.startswith("restored 'a' on local from the backup of 2026-01-02 ")
    assert star.read("local", "a") == "new"
    assert star.yurt("home", "restore", "./a", "--at", "2025-06-01").code == 0
    assert star.read("alpha", "a") == "oldest"
    data = star.yurt("home", "restore", "a", "--place", "alpha", "--json").json["data"]
    assert (data["place"], data["path"], data["files"]) == ("alpha", "a", 1)
    # What the previous restore replaced is the newest backup, but there was nothing.
    assert star.read("alpha", "a") == "old"


def test_a_path_without_a_backup_is_said(star: Star) -> None:
    done = star.yurt("home", "restore", "a")
    assert done.code == 3
    assert done.err.startswith("yurt: there is no backup of 'a'\n")
    keep(star, "alpha", NEW, "a")
    assert "from before that time" in star.yurt("home", "restore", "a", "--at", "2020-01-01").err
    assert star.yurt("home", "restore", str(star.roots["local"] / "a")).code == 0
