"""A round in which nothing has changed needs no Unison; every change needs one."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.homes.star import Star
from yurt.homes import client, finish, ledger, profile, quick


class Counted(Star):
    """Homes in sync; counts how often Unison ran."""

    runs = 0

    def unisons(self) -> int:
        """Sync once; return how often Unison ran."""
        before = self.runs
        assert self.sync().code == 0
        return self.runs - before

    def settle(self) -> None:
        """Sync until nothing changes any more."""
        assert 0 in [self.unisons() for _round in range(3)]


@pytest.fixture
def star(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Counted:
    made, run = Counted(tmp_path, monkeypatch), client.run
    monkeypatch.setattr(quick, "MARGIN", 0)
    monkeypatch.setattr(ledger, "SAME", -1000)  # every edit counts as old

    def counted(*arguments: object) -> client.Finished:
        made.runs += 1
        return run(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(client, "run", counted)
    return made


def same_length(root: Path) -> None:
    """Edit a file and set its time back."""
    old = (root / "a").stat()
    (root / "a").write_text("2")
    os.utime(root / "a", ns=(old.st_atime_ns, old.st_mtime_ns + 5 * 10**9))


def replaced(root: Path) -> None:
    (root / "b" / "new").write_text("x" * 100)
    (root / "b" / "new").rename(root / "b" / "c")


CHANGES: dict[str, Callable[[Path], object]] = {
    "edit": lambda root: (root / "a").write_text("longer"),
    "same length": same_length,
    "mode": lambda root: (root / "a").chmod(0o640),
    "mode of a folder": lambda root: (root / "b").chmod(0o750),
    "delete": lambda root: (root / "b" / "c").unlink(),
    "delete a folder": lambda root: shutil.rmtree(root / "b"),
    "rename": lambda root: (root / "a").rename(root / "z"),
    "replace": replaced,
    "new": lambda root: (root / "b" / "d").write_text("1"),
    "new folder": lambda root: (root / "b" / "e").mkdir(),
    "link": lambda root: (root / "b" / "l").symlink_to("c"),
}


def tree(root: Path) -> dict[str, tuple[int, str]]:
    """Return the mode and content of everything in a home that is not hidden."""
    found = {}
    for each in sorted(root.rglob("*")):
        path = str(each.relative_to(root))
        if not path.startswith("."):
            content = os.readlink(each) if each.is_symlink() else each.read_text() if each.is_file() else ""
            found[path] = (each.lstat().st_mode, content)
    return found


@pytest.mark.parametrize("place", ["local", "alpha"])
@pytest.mark.parametrize("change", CHANGES)
def test_every_change_is_seen(star: Counted, place: str, change: str) -> None:
    for path in ("a", "b/c", "f/g"):
        star.write("local", path, "1", age=100)
    star.settle()
    before = tree(star.roots[place])
    CHANGES[change](star.roots[place])
    assert star.unisons() > 0
    assert tree(star.roots["local"]) == tree(star.roots["alpha"]) != before
    star.settle()


def test_an_ignored_change_needs_no_unison(star: Counted) -> None:
    star.write("local", "a", "1", age=100)
    star.write("local", "b/.cache/x", "1")
    star.settle()
    star.write("local", "b/.cache/x", "22")
    assert star.unisons() == 0


def test_a_sync_that_was_killed_is_repeated(star: Counted, monkeypatch: pytest.MonkeyPatch) -> None:
    star.write("local", "a", "1", age=100)
    star.settle()
    star.write("local", "a", "22", age=100)
    end = client.run

    def killed(*arguments: object) -> client.Finished:
        raise KeyboardInterrupt

    monkeypatch.setattr(client, "run", killed)
    with pytest.raises(KeyboardInterrupt):
        star.sync()
    monkeypatch.setattr(client, "run", end)
    assert star.unisons() > 0 and star.read("alpha", "a") == "22"


def test_a_sync_that_was_killed_after_unison_is_repeated(star: Counted, monkeypatch: pytest.MonkeyPatch) -> None:
    star.write("local", "a", "1", age=100)
    star.settle()
    star.write("local", "a", "22", age=100)
    end = finish.run

    def killed(*_arguments: object, **_options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(finish, "run", killed)
    with pytest.raises(KeyboardInterrupt):
        star.sync()
    monkeypatch.setattr(finish, "run", end)
    assert star.unisons() > 0


def test_a_changed_profile_needs_unison(star: Counted) -> None:
    star.write("local", "a", "1", age=100)
    star.settle()
    file = profile.file_here(star.homes)
    text = file.read_text()
    star.write("local", ".config/app", "1", age=100)
    star.settle()
    file.write_text(f"{text}ignorenot = Path .config\n")
    assert star.unisons() > 0 and star.read("alpha", ".config/app") == "1"
    star.settle()
    file.write_text(f"{text}ignorenot = Path .config\nsortbysize = true\n")
    assert [star.unisons() for _round in range(3)] == [1, 1, 1]


def test_after_an_hour_unison_runs_in_any_case(star: Counted, monkeypatch: pytest.MonkeyPatch) -> None:
    star.write("local", "a", "1", age=100)
    star.settle()
    monkeypatch.setattr(quick, "LONGEST", 0)
    assert star.unisons() == 1


def test_a_home_that_is_gone_stops_the_sync(star: Counted) -> None:
    star.write("local", "a", "1", age=100)
    star.settle()
    star.roots["alpha"].rename(star.roots["alpha"].with_name("elsewhere"))
    star.roots["alpha"].mkdir()
    outcome = star.sync().outcomes[0]
    assert outcome.code == 3 and star.read("local", "a") == "1"
