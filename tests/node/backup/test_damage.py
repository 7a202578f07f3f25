"""Damaged backups: no version builds on them, what was in them is saved again, and what is whole is named."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.node.backup.trees import fingerprint
from yurt.node.backup import (
    DamagedError,
    Workspace,
    check,
    checking,
    newest,
    newest_whole,
    pipes,
    restore,
    retain,
    verify,
    versions,
)


class Desk:
    """A workspace with two versions, each with a pack of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.work, self.backups = folder, folder / "work", str(folder / "backups")
        self.work.mkdir()
        self.workspace = self.open()
        for name in ("a", "b"):
            (self.work / name).write_bytes(os.urandom(40_000))
            os.utime(self.work / name, ns=(10**18, 10**18 + 123))
            self.workspace.save("test", host="n1")

    def open(self) -> Workspace:
        return Workspace(str(self.work), self.backups, str(self.folder / "state"))

    def file(self, start: str) -> Path:
        return max(Path(self.backups).glob(start))

    def flip(self, start: str, at: int = -100) -> str:
        """Change one bit of a file, as a bad disk does; return its name."""
        file = self.file(start)
        content = bytearray(file.read_bytes())
        content[at] ^= 1
        file.write_bytes(content)
        return file.name

    def save(self, reason: str = "test") -> int:
        """Save as a dev node does; return the number of the new version, 0 for none."""
        self.workspace.read_in_turn(lambda: False)
        version = self.workspace.save(reason)
        return 0 if version is None else version.number

    def restores(self, number: int) -> bool:
        target = self.folder / f"r{number}"
        restore(self.backups, number, str(target))
        return fingerprint(target) == fingerprint(self.work)


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def test_a_flipped_bit_is_found_by_the_next_backup(desk: Desk) -> None:
    """Also if no file has changed; after that there is nothing to do."""
    name = desk.flip("p1-*")
    assert desk.save() == 3
    version = versions(desk.backups)[-1]
    assert version.note == f"files of damaged or missing packs were saved again: {name}" and not version.fork
    verify(desk.backups, 3)
    assert desk.restores(3) and desk.save() == 0
    assert check(desk.backups) == [1, 2]


@pytest.mark.parametrize("saved", [False, True])
def test_a_file_of_a_damaged_pack_that_was_deleted_is_counted(desk: Desk, saved: bool) -> None:
    """It is in no undamaged version any more; also if a version was saved since, which still needs its pack."""
    for name in ("c", "d", "e"):
        (desk.work / name).write_bytes(os.urandom(40_000))
    assert desk.save() == 3
    (desk.work / "d").unlink()
    if saved:
        assert desk.save() == 4
    name = desk.flip("p3-*")
    assert desk.save() == 4 + saved
    said = f"files of damaged or missing packs were saved again: {name}, but not 1 file that is no longer in"
    assert said in versions(desk.backups)[-1].note


@pytest.mark.parametrize("damage", ["cut", "remove"])
def test_a_pack_of_another_size_is_found_without_reading(desk: Desk, damage: str) -> None:
    file = desk.file("p1-*")
    if damage == "cut":
        os.truncate(file, 100)
    else:
        file.unlink()
    version = desk.workspace.save("test")
    assert version is not None and version.number == 3 and desk.restores(3)
    assert desk.workspace.save("test") is None


def test_packs_are_read_in_turn(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """A save reads a part, the next one goes on there, also in another process; a file that changed is saved beside."""
    monkeypatch.setattr(checking, "MOST", 15_000)
    monkeypatch.setattr(checking, "STEP", 10_000)
    monkeypatch.setattr(pipes, "PIECE", 4_000)
    name = desk.flip("p2-*")
    for _ in range(10):
        desk.workspace = desk.open()
        (desk.work / "new").write_bytes(os.urandom(10))
        assert desk.save()
        if name in versions(desk.backups)[-1].note:
            break
        last = checking.known(desk.backups)
        desk.workspace.read_in_turn(lambda: True)
        assert checking.known(desk.backups) == last, "it stops at once when the node goes"
    number = newest(desk.backups).number  # type: ignore[union-attr]
    assert 4 < number <= 12 and desk.restores(number)
    verify(desk.backups, number)


@pytest.mark.parametrize(("start", "at"), [("i*", -5), ("v2", 40), ("v2", -1)])
@pytest.mark.parametrize("again", [False, True])
def test_a_damaged_manifest_makes_no_fork(desk: Desk, start: str, at: int, again: bool) -> None:
    desk.flip(start, at)
    if again:
        desk.workspace = desk.open()
    assert desk.save() == 3
    found = newest(desk.backups)
    assert found is not None and (found.number, found.fork) == (3, False)
    verify(desk.backups, 3)
    assert desk.restores(3) and desk.save() == 0


def test_a_restore_elsewhere_tells_the_node_with_the_files(desk: Desk) -> None:
    name = desk.flip("p1-*")
    with pytest.raises(DamagedError, match=name):
        restore(desk.backups, 2, str(desk.folder / "other"))
    assert desk.workspace.lost() == {name}
    assert newest_whole(desk.backups) is None
    version = desk.workspace.save("end")  # without reading anything
    assert version is not None and desk.restores(3)
    whole = newest_whole(desk.backups)
    assert whole is not None and whole.number == 3
    assert desk.workspace.lost() == set()


def test_what_was_noted_by_mistake_is_forgotten(desk: Desk) -> None:
    """A disk that fails for a moment, or a note about a file that retention removed."""
    name = desk.file("p1-*").name
    checking.note(desk.backups, {name: True, "p9-gone": True})
    assert set(checking.known(desk.backups).damaged) == {name}
    desk.workspace.read_in_turn(lambda: False)
    assert desk.workspace.lost() == set() and desk.workspace.save("test") is None
    Path(desk.backups, checking.FILE).write_text("{")
    assert checking.known(desk.backups) == checking.Checked({})


def test_the_newest_version_without_damage_stays(desk: Desk) -> None:
    name = desk.flip("p2-*")
    checking.note(desk.backups, {name: True})
    assert retain(desk.backups, last=1, days=0, weeks=0) == []
    retain(desk.backups, last=1, days=0, weeks=0, limit=1)
    assert [each.number for each in versions(desk.backups)] == [1, 2]
    desk.save()
    assert retain(desk.backups, last=1, days=0, weeks=0) == [1, 2]
    assert desk.restores(3)


def test_a_damaged_version_file_does_not_keep_packs_for_ever(desk: Desk) -> None:
    desk.flip("v1", 40)
    for _ in range(2):
        for name in ("a", "b"):
            (desk.work / name).write_bytes(os.urandom(40_000))
        desk.save()
    retain(desk.backups, last=1, days=0, weeks=0)
    assert len(list(Path(desk.backups).glob("p*"))) == 1 and desk.restores(4)
