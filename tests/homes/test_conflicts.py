"""Conflicts of the homes: shown side by side, resolved one by one or by a rule; nothing is lost."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.homes.star import Star
from yurt.homes import conflicts
from yurt.homes import list_conflicts as verbs
from yurt.homes.resolve import name_beside

AT = 1794873600.0


@pytest.fixture
def star(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Star:
    return Star(tmp_path, monkeypatch)


@pytest.fixture
def three(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Star:
    return Star(tmp_path, monkeypatch, ["alpha", "beta"])


def saved(star: Star, place: str) -> dict[str, str]:
    """Return the files in the dated folders of a place."""
    return {
        str(file.relative_to(star.backups(place))).partition("/")[2]: file.read_text()
        for file in star.backups(place).glob("20*/**/*")
        if file.is_file() and not file.is_symlink()
    }


def changed_on_both(star: Star, *paths: str) -> None:
    """Sync some files, then change each on both sides and sync again; the version of alpha is newer."""
    for path in paths:
        star.write("local", path, "first", age=100)
    assert star.sync().code == 0
    for path in paths:
        star.write("local", path, "mine\n", age=50)
        star.write("alpha", path, "theirs!\n")
    assert star.sync().code == 1


def test_conflicts_are_shown_side_by_side_until_both_sides_agree(star: Star) -> None:
    changed_on_both(star, "a.txt", "odd\nname")
    done = star.yurt("home", "conflicts")
    assert done.code == 0, done
    title, first, second, *_rest = done.out.splitlines()
    assert title.split() == ["path", "on", "local", "on", "alpha"]
    assert first.split()[0] == "a.txt"
    assert "5 B, " in first
    assert "8 B, " in first
    assert second.startswith("odd�name")
    found = star.yurt("home", "conflicts", "--json", "a.txt").json["data"]["conflicts"]
    assert [each["path"] for each in found] == ["a.txt"]
    assert found[0]["versions"]["alpha"]["size"] == 8
    assert found[0]["diffs"][0].splitlines()[2:] == ["@@ -1 +1 @@", "-mine", "+theirs!"]
    star.write("local", "a.txt", "theirs!\n")
    assert [each.path for each in conflicts.find(star.homes)[0]] == ["odd\nname"]
    unknown = star.yurt("home", "conflicts", "a.txt")
    assert unknown.code == 3 and "there is no conflict at 'a.txt'" in unknown.err


@pytest.mark.parametrize(("rule", "text"), [(["--keep", "local"], "mine\n"), (["--newer"], "theirs!\n")])
def test_a_rule_keeps_one_version_and_the_other_goes_to_a_backup(star: Star, rule: list[str], text: str) -> None:
    paths = ["a.txt", "sub/-dash", "odd\nname", "sp  (x) ", "\udcff"]
    changed_on_both(star, *paths)
    refused = star.yurt("home", "conflicts", *rule)
    assert refused.code == 2
    assert "nothing was resolved" in refused.err
    assert star.read("alpha", "a.txt") == "theirs!\n"
    star.write("alpha", "new", "not synced")
    done = star.yurt("home", "conflicts", *rule, "--yes")
    assert done.code == 0, done
    assert {star.read(place, path) for place in ("local", "alpha") for path in paths} == {text}
    loser, lost = ("alpha", "theirs!\n") if text == "mine\n" else ("local", "mine\n")
    assert saved(star, loser) == dict.fromkeys(paths, lost)
    assert not (star.roots["local"] / "new").exists()  # only the paths in conflict were synced
    assert conflicts.find(star.homes) == ([], [])
    assert star.yurt("home", "conflicts").out == "no conflicts\n"
    assert star.sync().code == 0


def test_some_paths_are_resolved_and_the_others_stay(star: Star) -> None:
    changed_on_both(star, "a", "folder/b", "folder/c")
    done = star.yurt("home", "conflicts", "folder", "--keep", "alpha", "--yes", "--json")
    assert [each["path"] for each in done.json["data"]["resolved"]] == ["folder/b", "folder/c"]
    assert star.read("local", "folder/b") == "theirs!\n"
    assert star.read("local", "a") == "mine\n"
    assert [each.path for each in conflicts.find(star.homes)[0]] == ["a"]


def test_both_versions_are_kept_on_both_places(star: Star) -> None:
    changed_on_both(star, "a.txt")
    (star.roots["local"] / "link").symlink_to("one")
    (star.roots["alpha"] / "link").symlink_to("two")
    star.sync()
    data = star.yurt("home", "conflicts", "--both", "--yes", "--json").json["data"]
    beside = {each["path"]: each["beside"] for each in data["resolved"]}
    (name,) = beside["a.txt"]
    assert name.startswith("a.alpha-20")
    assert name.endswith(".txt")
    for place in ("local", "alpha"):
        assert star.read(place, "a.txt") == "mine\n"
        assert star.read(place, name) == "theirs!\n"
        assert os.readlink(star.roots[place] / "link") == "one"
        assert os.readlink(star.roots[place] / beside["link"][0]) == "two"
    assert star.sync().code == 0


def test_a_deletion_is_a_version_too(star: Star) -> None:
    for path in ("a", "b", "c", "tree/x"):
        star.write("local", path, "first", age=100)
    assert star.sync().code == 0
    for path in ("a", "b", "c"):
        (star.roots["local"] / path).unlink()
        star.write("alpha", path, "changed")
    (star.roots["alpha"] / "tree/x").unlink()
    (star.roots["alpha"] / "tree").rmdir()
    star.write("local", "tree/x", "changed")
    assert star.sync().code == 1
    out = star.yurt("home", "conflicts").out
    assert "deleted" in out
    assert "folder, 1 file" in out
    assert star.yurt("home", "conflicts", "--keep", "local", "a", "--yes").code == 0
    assert star.yurt("home", "conflicts", "--newer", "b", "tree", "--yes").code == 0
    assert star.yurt("home", "conflicts", "--both", "c", "--yes").code == 0
    for place in ("local", "alpha"):
        assert not (star.roots[place] / "a").exists()
        assert star.read(place, "b") + star.read(place, "c") + star.read(place, "tree/x") == "changed" * 3
    assert saved(star, "alpha")["a"] == "changed"
    assert star.sync().code == 0


def test_modes_of_folders_are_a_conflict_of_their_own(star: Star) -> None:
    """The homes themselves may have different modes."""
    star.roots["local"].chmod(0o700)
    for place, mode in (("local", 0o750), ("alpha", 0o755)):
        star.write(place, "folder/a", f"of {place}")
        star.write(place, "file", "same")
        (star.roots[place] / "folder").chmod(mode)
        (star.roots[place] / "file").chmod(mode)
    assert star.sync().code == 1
    assert [each.path for each in conflicts.find(star.homes)[0]] == ["file", "folder", "folder/a"]
    lines = star.yurt("home", "conflicts").out.splitlines()
    assert lines[1].split() == ["file", "file,", "mode", "750", "file,", "mode", "755"]
    assert lines[2].split() == ["folder", "folder,", "mode", "750", "folder,", "mode", "755"]
    found = verbs.find()
    chosen = conflicts.keep(found.open[:2], "alpha")
    assert verbs.resolve(found, chosen).exit_code == 0
    assert (star.roots["local"] / "folder").stat().st_mode & 0o777 == 0o755
    assert (star.roots["local"] / "file").stat().st_mode & 0o777 == 0o755
    assert star.read("local", "folder/a") == "of local"
    assert [each.path for each in conflicts.find(star.homes)[0]] == ["folder/a"]
    assert star.yurt("home", "conflicts", "--keep", "local", "--yes").code == 0
    assert star.sync().code == 0


@pytest.mark.parametrize("kept", ["alpha", "beta"])
def test_a_conflict_of_three_places_is_resolved_on_all(three: Star, kept: str) -> None:
    three.write("local", "a", "first", age=100)
    three.write("local", "b", "first", age=100)
    assert three.sync().code == 0
    for place in ("local", "alpha", "beta"):
        three.write(place, "a", f"of {place}")
    three.write("local", "b", "of local")
    three.write("alpha", "b", "of alpha")
    assert three.sync().code == 1
    (one, _two) = conflicts.find(three.homes)[0]
    assert list(one.versions) == ["local", "alpha", "beta"]
    done = three.yurt("home", "conflicts", "--keep", kept, "--yes")
    assert done.code == 0, done
    assert {three.read(place, "a") for place in ("local", "alpha", "beta")} == {f"of {kept}"}
    if kept != "beta":  # it has a part only in the conflict of a
        assert {three.read(place, "b") for place in ("local", "alpha", "beta")} == {f"of {kept}"}
    versions = {text for place in ("local", "alpha", "beta") for text in saved(three, place).values()}
    assert versions >= {f"of {place}" for place in ("local", "alpha", "beta") if place != kept}


def test_three_versions_are_kept_on_all_places(three: Star) -> None:
    for name in ("a.txt", "b.txt"):
        three.write("local", name, "first", age=100)
    assert three.sync().code == 0
    for place in ("local", "alpha", "beta"):
        three.write(place, "a.txt", f"of {place}")
        three.write(place, "b.txt", "of local" if place == "local" else "of both others")
    assert three.sync().code == 1
    assert three.yurt("home", "conflicts", "--both", "--yes").code == 0
    for place in ("local", "alpha", "beta"):
        texts = sorted(file.read_text() for file in three.roots[place].glob("a*.txt"))
        assert texts == ["of alpha", "of beta", "of local"]
        assert sorted(file.read_text() for file in three.roots[place].glob("b*.txt")) == ["of both others", "of local"]


def test_a_place_that_cannot_be_reached_is_said(star: Star, monkeypatch: pytest.MonkeyPatch) -> None:
    changed_on_both(star, "a")
    argv: Callable[..., list[str]] = lambda _host, _command: ["sh", "-c", "echo gone >&2; exit 255"]  # noqa: E731
    monkeypatch.setattr("tests.homes.star.Login.argv", argv)
    done = star.yurt("home", "conflicts")
    assert "not reachable" in done.out
    assert "alpha" in done.err
    refused = star.yurt("home", "conflicts", "--keep", "local", "--yes")
    assert refused.code == 5
    assert "alpha cannot be reached" in refused.err


def test_rules_that_make_no_sense_are_refused(star: Star) -> None:
    assert "cannot be combined" in star.yurt("home", "conflicts", "--newer", "--both").err
    assert "--yes needs a rule" in star.yurt("home", "conflicts", "--yes").err
    assert "'gamma' is not one of the places" in star.yurt("home", "conflicts", "--keep", "gamma").err


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("a.txt", ("a.alpha-20261117", ".txt")),
        ("d.x/a", ("d.x/a.alpha-20261117", "")),
        (".bashrc", (".bashrc.alpha-20261117", "")),
        ("x.tar.gz", ("x.alpha-20261117", ".tar.gz")),
    ],
)
def test_a_name_beside_keeps_its_extension(path: str, expected: tuple[str, str]) -> None:
    assert name_beside(path, "alpha", AT) == expected


@pytest.mark.parametrize("name", ["ä" * 127, "x" * 251 + ".txt", "a." + "b" * 253, "x" * 248 + ".tar.gz"])
def test_a_name_beside_is_no_longer_than_a_name_may_be(name: str) -> None:
    found = [name_beside(f"folder/{name}", place, AT) for place in ("alpha", "beta")]
    assert len(set(found)) == 2
    assert all(len(f"{stem}-99{end}".encode()) <= len("folder/") + 255 for stem, end in found)
