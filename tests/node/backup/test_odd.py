"""Odd files: ignored, unreadable, deep, sparse, changing while they are read; retention and paths."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from tests.node.backup.trees import fingerprint
from yurt.node.backup import (
    BackupError,
    MissingPathError,
    Workspace,
    held_size,
    pack_write,
    packs_of,
    plan,
    restore,
    restore_paths,
    retain,
    saving,
    scan,
    verify,
    versions,
)
from yurt.node.backup.ignore import Rules
from yurt.node.backup.reach import Reach


class Desk:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.work, self.backups = folder / "work", str(folder / "backups")
        self.work.mkdir()
        self.open()

    def open(self) -> None:
        self.workspace = Workspace(str(self.work), self.backups, str(self.folder / "state"))

    def restored(self) -> Path:
        target = self.folder / "restored"
        restore(self.backups, self.workspace.base, str(target))
        return target


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def test_yurtignore(desk: Desk) -> None:
    for name in ("a.o", "keep.o", "build/x", "src/build", "src/a.txt", "src/deep/er/b.tmp", "data/1", "top", "src/top"):
        (desk.work / name).parent.mkdir(parents=True, exist_ok=True)
        (desk.work / name).write_text("x")
    (desk.work / ".yurtignore").write_text("# comment\n*.o\n!keep.o\nbuild/\n/top\nsrc/**/*.tmp\ndata/*\n")
    (desk.work / "src" / ".yurtignore").write_text("*.txt\n")
    desk.workspace.save("test")
    found = desk.restored()
    files = {str(each.relative_to(found)) for each in found.rglob("*") if each.is_file()}
    assert files == {".yurtignore", "src/.yurtignore", "keep.o", "src/build", "src/top"}
    (desk.work / ".yurtignore").unlink()
    assert desk.workspace.changes() > 5


def test_paths_longer_than_the_kernel_allows(desk: Desk) -> None:
    here = os.getcwd()
    name = "d" * 200
    try:
        os.chdir(desk.work)
        for number in range(45):
            os.mkdir(name)
            os.chdir(name)
            Path(f"f{number}").write_text(str(number))
        os.link("f44", "linked")
    finally:
        os.chdir(here)
    version = desk.workspace.save("test")
    assert version is not None and version.files == 46
    assert desk.workspace.changes() == 0
    verify(desk.backups, 1)
    listing = ["find", ".", "-printf", "%s %m %T@ %n %y\\n"]
    target = desk.restored()
    there, back = (
        subprocess.run(listing, cwd=each, capture_output=True, check=True).stdout for each in (desk.work, target)
    )
    strip = [line for line in back.splitlines() if not line.endswith(b"d")]
    assert strip == [line for line in there.splitlines() if not line.endswith(b"d")] and len(strip) == 46
    subprocess.run(["rm", "-rf", str(target), str(desk.work)], check=True)


def test_sparse_files_stay_sparse(desk: Desk) -> None:
    with (desk.work / "sparse").open("wb") as stream:
        stream.truncate(1 << 30)
    version = desk.workspace.save("test")
    assert version is not None and version.size == 1 << 30 and version.new_size < 10_000
    assert (desk.restored() / "sparse").stat().st_blocks < 1000


def test_a_file_that_changes_while_it_is_read_is_read_again(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    (desk.work / "log").write_text("1")
    (desk.work / "gone").write_text("1")
    real, times = pack_write.write_pack, []

    def write_pack(*arguments: object) -> int:
        size = real(*arguments)  # type: ignore[arg-type]
        times.append(size)
        if len(times) <= changes:
            (desk.work / "log").write_text("more" * len(times))
            (desk.work / "gone").unlink(missing_ok=True)
        return size

    monkeypatch.setattr(saving, "write_pack", write_pack)
    changes = 1
    version = desk.workspace.save("test")
    assert version is not None and version.note == "" and len(times) == 2
    assert (desk.restored() / "log").read_text() == "more"
    times.clear()
    changes = 9
    (desk.work / "log").write_text("new")
    version = desk.workspace.save("test")
    assert version is not None and version.note == "1 changed while being read: log" and len(times) == 2
    verify(desk.backups, version.number)
    changes = 0
    assert desk.workspace.changes() > 0
    version = desk.workspace.save("test")
    assert version is not None and version.note == ""


UNREADABLE = """
import os, sys
from yurt.node.backup import Workspace, restore
os.setgid(65534); os.setuid(65534)
os.chdir(sys.argv[1])
os.mkdir("work")
for name in ("open", "closed"):
    open("work/" + name, "w").write(name)
os.mkdir("work/room"); open("work/room/x", "w").close()
os.chmod("work/closed", 0); os.chmod("work/room", 0)
workspace = Workspace("work", "backups", "state")
version = workspace.save("test")
assert "1 cannot be read: closed" in version.note and "room: Permission denied" in version.note, version
assert workspace.save("test") is None and workspace.changes() == 1
os.chmod("work/closed", 0o600); os.chmod("work/room", 0o500)
assert workspace.save("test").note == ""
restore("backups", 2, "restored")
assert open("restored/closed").read() == "closed" and os.listdir("restored/room") == ["x"]
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to become another user")
def test_what_cannot_be_read_is_named(tmp_path: Path) -> None:
    folder = Path("/tmp") / f"yurt-unreadable-{os.getpid()}"
    folder.mkdir()
    try:
        folder.chmod(0o777)
        done = subprocess.run(
            [sys.executable, "-c", UNREADABLE, str(folder)], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
    finally:
        subprocess.run(["rm", "-rf", str(folder)], check=True)


def test_a_workspace_that_is_no_folder_any_more(desk: Desk) -> None:
    (desk.work / "a").write_text("a")
    desk.workspace.save("test")
    desk.work.rename(desk.folder / "elsewhere")
    with pytest.raises(BackupError, match=r"cannot read the workspace .*No such file"):
        desk.workspace.save("test")
    desk.work.write_text("a file")
    with pytest.raises(BackupError, match="it is not a folder"):
        desk.workspace.save("test")
    desk.work.unlink()
    (desk.folder / "elsewhere").rename(desk.work)
    assert desk.workspace.save("test") is None


def test_some_paths(desk: Desk) -> None:
    (desk.work / "a" / "b").mkdir(parents=True)
    for name in ("a/b/one", "a/two", "three"):
        (desk.work / name).write_text(name)
    desk.workspace.save("test")
    assert restore_paths(desk.backups, 1, ["a/b/", "three"], str(desk.folder / "some")) == ["a/b/one", "three"]
    assert not (desk.folder / "some" / "a" / "two").exists()
    (desk.work / "a" / "two").write_text("changed")
    desk.workspace.save("test")
    first, second = packs_of(desk.backups, 2, ["three"]), packs_of(desk.backups, 2, ["a/two"])
    assert len(first) == len(second) == 1 and first != second
    assert packs_of(desk.backups, 2, ["."]) == sorted(first + second)
    with pytest.raises(MissingPathError, match="v1 has no file or folder 'nothing'"):
        restore_paths(desk.backups, 1, ["nothing"], str(desk.folder / "none"))
    with pytest.raises(BackupError, match="exists"):
        restore(desk.backups, 1, str(desk.folder / "some"))


def test_retention(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    real = time.time
    for day in range(6):
        for _ in range(2):
            (desk.work / "file").write_bytes(os.urandom(5000))
            monkeypatch.setattr(time, "time", lambda day=day: real() + 86400 * day)
            desk.workspace.save("test")
    assert len(versions(desk.backups)) == 12
    retain(desk.backups, last=3, days=3, weeks=1)
    numbers = [each.number for each in versions(desk.backups)]
    assert numbers == [8, 10, 11, 12]
    for number in numbers:
        verify(desk.backups, number)
    retain(desk.backups, limit=1)
    assert [each.number for each in versions(desk.backups)] == [12]
    assert len(os.listdir(desk.backups)) == 3 and held_size(desk.backups) < 10_000


def test_many_saves_need_few_packs(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "MOST_PACKS", 4)
    monkeypatch.setattr(plan, "FEWER_PACKS", 2)
    for number in range(9):
        (desk.work / f"f{number}").write_text(str(number))
        desk.workspace.save("test")
    retain(desk.backups, last=1, days=0, weeks=0)
    assert len(list(Path(desk.backups).glob("p*"))) <= 5
    assert fingerprint(desk.restored()) == fingerprint(desk.work)


def test_a_state_that_is_damaged_or_foreign_counts_as_none(desk: Desk) -> None:
    (desk.work / "file").write_text("1")
    desk.workspace.save("test")
    state = desk.folder / "state" / "state"
    content = state.read_bytes()
    state.write_bytes(content[:40] + b"x" + content[41:])
    desk.open()
    assert desk.workspace.base == 0
    state.write_bytes(content)
    desk.open()
    assert desk.workspace.base == 1 and desk.workspace.changes() == 0
    desk.work.rename(desk.folder / "aside")
    desk.work.mkdir()
    desk.open()
    assert desk.workspace.base == 0


def _make(kind: str, path: Path) -> None:
    if kind == "folder":
        path.mkdir()
    elif kind == "loop":
        path.symlink_to(path.name)
    else:
        os.mkfifo(path)


@pytest.mark.parametrize("kind", ["folder", "loop", "fifo"])
def test_a_yurtignore_that_is_no_file_leaves_nothing_out(desk: Desk, kind: str) -> None:
    (desk.work / "precious").write_text("precious")
    _make(kind, desk.work / ".yurtignore")
    version = desk.workspace.save("test")
    assert version is not None and "the patterns of .yurtignore" in version.note
    restore(desk.backups, version.number, str(desk.folder / "back"))
    assert (desk.folder / "back" / "precious").read_text() == "precious"


def test_a_byte_order_mark_is_no_part_of_a_pattern(desk: Desk) -> None:
    (desk.work / ".yurtignore").write_bytes(b"\xef\xbb\xbf*.tmp\n")
    (desk.work / "a.tmp").touch()
    version = desk.workspace.save("test")
    assert version is not None and version.files == 1


CLOSED = """
import os, sys
from yurt.node.backup import BackupError, Workspace, restore
work, backups, state, back = (os.path.join(sys.argv[1], each) for each in ("work", "backups", "state", "back"))
os.setgid(65534), os.setuid(65534)
os.makedirs(work + "/closed")
for name in ("closed/a", "b"):
    with open(os.path.join(work, name), "w") as stream:
        stream.write(name)
workspace = Workspace(work, backups, state)
workspace.save("test")
os.chmod(work + "/closed", 0)
with open(work + "/b", "a") as stream:
    stream.write("more")
version = workspace.save("test")
assert "closed: Permission denied" in version.note, version.note
os.chmod(work + "/closed", 0o700)
restore(backups, version.number, back)
os.chmod(back + "/closed", 0o700)
assert open(back + "/closed/a").read() == "closed/a" and open(back + "/b").read() == "bmore"
os.chmod(work, 0)
try:
    workspace.save("test")
    sys.exit("a workspace that cannot be read was saved")
except BackupError as error:
    assert "cannot read the workspace" in str(error), error
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to become another user")
def test_a_folder_that_cannot_be_read_keeps_what_it_had() -> None:
    """It is not taken for an empty one. A workspace that cannot be read is not saved at all."""
    folder = Path(tempfile.mkdtemp(dir="/tmp"))
    try:
        os.chown(folder, 65534, 65534)
        done = subprocess.run([sys.executable, "-c", CLOSED, str(folder)], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    finally:
        subprocess.run(["rm", "-rf", str(folder)], check=True)


def test_a_folder_that_is_renamed_during_the_walk(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    (desk.work / "big" / "below").mkdir(parents=True)
    for number in range(20):
        (desk.work / "big" / "below" / str(number)).write_text(str(number))
    real, left = scan._Walk.folder, ["big2", "big", "big2"]

    def moved(self: scan._Walk, reach: Reach, prefix: bytes, above: Rules) -> list[tuple[bytes, Rules]]:
        found = real(self, reach, prefix, above)
        if left and not prefix:  # after the top folder was listed
            (now,) = (each for each in desk.work.iterdir() if each.name.startswith("big"))
            now.rename(desk.work / left.pop(0))
        return found

    monkeypatch.setattr(scan._Walk, "folder", moved)
    version = desk.workspace.save("test")
    assert version is not None and not left
    restore(desk.backups, version.number, str(desk.folder / "back"))
    assert fingerprint(desk.folder / "back") == fingerprint(desk.work)


def test_a_new_workspace_did_not_change_during_its_backup(desk: Desk) -> None:
    """It was made just before the walk, and so was the folder that a restore has put in place."""
    version = desk.workspace.save("first")
    assert version is not None and version.note == ""
    desk.work.rename(desk.folder / "aside")
    restore(desk.backups, 1, str(desk.work), str(desk.folder / "state"))
    desk.open()
    desk.workspace.succeed(version)
    again = desk.workspace.save("restore of v1")
    assert again is not None and again.note == ""


def test_a_git_repository_in_use_is_saved_whole(desk: Desk) -> None:
    """A commit that happens during the walk is in the version with its objects, or not at all."""
    work = desk.work / "code"
    work.mkdir()
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-c", "gc.auto=0", "-C", str(work)]
    subprocess.run([*git, "init", "-q"], check=True)
    commit = 'echo $n > f$n; "$@" add -A; "$@" commit -qm $n; sleep 0.1'
    script = f"for n in 1 2 3 4 5 6 7 8 9 10 11 12; do {commit}; done"
    with subprocess.Popen(["sh", "-c", script, "sh", *git], cwd=work) as user:
        numbers = []
        while user.poll() is None:
            version = desk.workspace.save("test")
            if version is not None and "may not fit together" not in version.note:
                numbers.append(version.number)
    version = desk.workspace.save("test")  # a busy machine may have finished none before the last commit
    numbers += [version.number] if version is not None else []
    for number in numbers:
        target = desk.folder / f"back{number}"
        restore(desk.backups, number, str(target))
        branch = [each for each in target.glob("code/.git/refs/heads/*") if each.suffix != ".lock"]
        if branch:  # the branch has all its commits and files
            words = ["git", "-C", str(target / "code"), "rev-list", "--objects", branch[0].name]
            done = subprocess.run(words, capture_output=True, check=False)
            assert done.returncode == 0, (number, done)
