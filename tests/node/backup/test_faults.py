"""Full disks, damaged files, kills and two writers: what is listed restores, and nothing else is listed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.campaign.backups import FAULTS, Case, draw, run_case
from tests.node.backup.trees import fingerprint
from yurt.node.backup import BackupError, Workspace, newest, restore, retain, verify, versions

SAVE = """
import resource, sys
from yurt.node.backup import BackupError, Workspace
folder, limit = sys.argv[1], int(sys.argv[2])
if limit:
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
try:
    Workspace(folder + "/work", folder + "/backups", folder + "/state").save("test")
except BackupError as error:
    sys.exit(str(error))
"""


class Desk:
    """A workspace with a few files, its backups and its state."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.work, self.backups, self.state = folder / "work", folder / "backups", folder / "state"
        self.work.mkdir()
        for number in range(20):
            (self.work / f"f{number}").write_bytes(os.urandom(20_000))

    def open(self) -> Workspace:
        return Workspace(str(self.work), str(self.backups), str(self.state))

    def save(self, limit: int = 0) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", SAVE, str(self.folder), str(limit)]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    def names(self) -> list[str]:
        return sorted(each.name for each in self.backups.iterdir())


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def test_a_full_disk_publishes_nothing_and_leaves_nothing(desk: Desk) -> None:
    assert desk.open().save("first")
    before = desk.names()
    (desk.work / "large").write_bytes(os.urandom(300_000))
    done = desk.save(limit=100_000)
    assert done.returncode == 1 and "cannot write the pack" in done.stderr and "Traceback" not in done.stderr
    assert desk.names() == before
    workspace = desk.open()
    assert workspace.base == 1 and workspace.changes() == 2
    assert desk.save().returncode == 0
    assert desk.open().changes() == 0


@pytest.mark.parametrize("name", ["p", "i", "v"])
@pytest.mark.parametrize("damage", ["flip", "cut", "remove"])
def test_damage_is_noticed_and_named(desk: Desk, name: str, damage: str) -> None:
    desk.open().save("first")
    file = next(each for each in desk.backups.iterdir() if each.name.startswith(name))
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    if damage == "remove":
        file.unlink()
    else:
        file.write_bytes(content if damage == "flip" else content[:-3])
    with pytest.raises(BackupError, match=file.name[:2]):
        verify(str(desk.backups), 1)
    with pytest.raises(BackupError, match=file.name[:2]):
        restore(str(desk.backups), 1, str(desk.folder / "restored"))
    assert sorted(each.name for each in desk.folder.iterdir()) == ["backups", "state", "work"]


def test_a_lost_pack_is_saved_again(desk: Desk) -> None:
    desk.open().save("first")
    next(desk.backups.glob("p1-*")).unlink()
    version = desk.open().save("again")
    assert version is not None and version.number == 2
    verify(str(desk.backups), 2)


def test_two_writers_both_keep_their_work(desk: Desk) -> None:
    first = desk.open()
    first.save("first")
    other = desk.folder / "other"
    restore(str(desk.backups), 1, str(other), str(desk.folder / "other-state"))
    second = Workspace(str(other), str(desk.backups), str(desk.folder / "other-state"))
    (desk.work / "mine").write_text("1")
    (other / "theirs").write_text("2")
    mine, theirs = first.save("mine"), second.save("theirs")
    assert mine and theirs
    assert (mine.number, mine.fork) == (2, False)
    assert (theirs.number, theirs.fork, theirs.parent) == (3, True, 1)
    found = newest(str(desk.backups))
    assert found is not None and found.number == 2
    assert retain(str(desk.backups), last=1, days=0, weeks=0) == [1]
    for version, folder in ((2, desk.work), (3, other)):
        restore(str(desk.backups), version, str(desk.folder / f"r{version}"))
        assert fingerprint(desk.folder / f"r{version}") == fingerprint(folder)


def test_many_writers_at_once(desk: Desk) -> None:
    """Every process publishes a version of its own; all are complete, and one line has no fork."""
    desk.open().save("first")
    script = SAVE.replace('"/state"', '"/state" + sys.argv[3]')
    running = []
    for number in range(4):
        place = desk.folder / f"w{number}"
        restore(str(desk.backups), 1, str(place / "work"), str(desk.folder / f"state{number}"))
        (place / "work" / "own").write_text(str(number))
        (place / "backups").symlink_to(desk.backups)
        (place / f"state{number}").symlink_to(desk.folder / f"state{number}")
        running.append(subprocess.Popen([sys.executable, "-c", script, str(place), "0", str(number)]))
    assert [each.wait() for each in running] == [0] * 4
    found = versions(str(desk.backups))
    assert [each.number for each in found] == [1, 2, 3, 4, 5]
    assert [each.fork for each in found] == [False, False, True, True, True]
    for each in found:
        verify(str(desk.backups), each.number)


def test_another_users_folder_is_refused(desk: Desk) -> None:
    desk.backups.mkdir()
    os.chown(desk.backups, 12345, 12345)
    with pytest.raises(BackupError, match="belongs to another user"):
        desk.open().save("first")


def test_leftovers_of_killed_processes_go(desk: Desk) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", "from yurt.node.backup import claims; print(claims.own(), flush=True); input()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    name = process.stdout.readline().strip()
    desk.open().save("first")
    (desk.backups / f".{name}.p9.tar.zst").write_bytes(b"half")
    (desk.folder / f".{name}.restoring").mkdir()
    (desk.work / "new").touch()
    desk.open().save("alive")
    assert (desk.backups / f".{name}.p9.tar.zst").exists(), "its process runs"
    process.send_signal(signal.SIGKILL)
    process.wait()
    (desk.work / "newer").touch()
    desk.open().save("dead")
    restore(str(desk.backups), 1, str(desk.folder / "r"))
    assert not (desk.backups / f".{name}.p9.tar.zst").exists()
    assert not (desk.folder / f".{name}.restoring").exists()


@pytest.mark.parametrize("fault", FAULTS)
def test_a_case_of_the_campaign(tmp_path: Path, fault: str) -> None:
    assert run_case(tmp_path, Case(fault, 7, 0.4)) == []


def test_the_same_seed_gives_the_same_cases() -> None:
    assert draw(3, 20) == draw(3, 20) != draw(4, 20)
    assert {case.fault for case in draw(3, 1)} == set(FAULTS)
