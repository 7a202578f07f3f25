"""The private folder of a service: nobody else's, removed when its service is gone, never on a shared disk."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest

from yurt.node.files import NodeError, remove
from yurt.node.service import place

LIMITED = """
import resource, signal, sys
sys.path.insert(0, {source!r})
from yurt.node.service import place
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
place.PARENTS = tuple(sys.argv[1:])
try:
    print(place.make().folder)
except place.NodeError as error:
    print(error)
"""


@pytest.fixture
def parents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    found = [tmp_path / "tmp", tmp_path / "shm"]
    for each in found:
        each.mkdir()
    monkeypatch.setattr(place, "PARENTS", tuple(map(str, found)))
    return found


def folders(parent: Path) -> list[str]:
    return sorted(each.name for each in parent.iterdir())


def killed(made: place.Place) -> None:
    """What the kernel does when the process of a service ends."""
    os.close(made.lock)


def test_it_is_private_and_locked(parents: list[Path]) -> None:
    before = os.umask(0)
    try:
        made = place.make()
    finally:
        os.umask(before)
    assert Path(made.folder).parent == parents[0] and os.stat(made.folder).st_mode & 0o777 == 0o700
    assert os.stat(Path(made.folder, place.LOCK)).st_mode & 0o777 == 0o600
    with Path(made.folder, place.LOCK).open("rb") as other, pytest.raises(BlockingIOError):
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    assert [each.name for each in Path(made.folder).iterdir()] == [place.LOCK] and not os.get_inheritable(made.lock)
    killed(made)


def test_only_folders_of_killed_services_are_removed(parents: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    dead, alive = place.make(), place.make()
    Path(dead.folder, "token").write_text("secret")
    Path(dead.folder, "run").mkdir(0o500)
    unlocked = parents[0] / f"{place.PREFIX}new"  # another process is making it
    unlocked.mkdir()
    old = parents[0] / f"{place.PREFIX}old"
    old.mkdir()
    os.utime(old, (0, 0))
    (parents[0] / "other").mkdir()
    killed(dead)
    with monkeypatch.context() as patch:  # of another user
        patch.setattr(os, "getuid", lambda: 4711)
        stranger = place.make()
        assert Path(dead.folder).exists() and old.exists()
        killed(stranger)
        remove(stranger.folder)
    made = place.make()
    expected = [Path(alive.folder).name, Path(made.folder).name, unlocked.name, "other"]
    assert folders(parents[0]) == sorted(expected)
    for each in (alive, made):
        killed(each)


def test_links_and_files_of_this_name_are_left_alone(parents: list[Path], tmp_path: Path) -> None:
    """Someone who can write to /tmp, as everyone can, must not make us remove or lock something else."""
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / place.LOCK).write_text("mine")
    (parents[0] / f"{place.PREFIX}a").symlink_to(precious)
    (parents[0] / f"{place.PREFIX}b").write_text("file")
    trap = parents[0] / f"{place.PREFIX}c"
    trap.mkdir()
    (trap / place.LOCK).symlink_to(precious / place.LOCK)
    made = place.make()
    assert (precious / place.LOCK).read_text() == "mine" and len(folders(parents[0])) == 4
    killed(made)


def test_a_full_or_read_only_disk(parents: list[Path]) -> None:
    """A limit of the size of files stands for a full disk: the folder can be made, and nothing fits into it."""
    source = str(Path(place.__file__).parents[3])
    argv = [sys.executable, "-c", LIMITED.format(source=source), *map(str, parents)]
    said = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
    assert said.startswith("this node has no place for a private folder (") and said.count("No space left") == 2
    assert folders(parents[0]) == folders(parents[1]) == []


def test_the_next_place_is_used(parents: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(place, "PARENTS", ("/proc/self", str(parents[0] / "missing"), str(parents[1])))
    made = place.make()
    assert Path(made.folder).parent == parents[1]
    killed(made)
    monkeypatch.setattr(place, "PARENTS", ("/proc/self",))
    with pytest.raises(NodeError, match=r"no place for a private folder \(/proc/self: .*\)"):
        place.make()


def test_a_disk_that_other_nodes_share_is_not_used(parents: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    assert place._type("/proc/self") == "proc"
    monkeypatch.setattr(place, "_type", lambda path: "nfs4" if path == str(parents[0]) else "tmpfs")
    made = place.make()
    assert Path(made.folder).parent == parents[1]
    killed(made)
