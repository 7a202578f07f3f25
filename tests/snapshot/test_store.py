"""After any interruption of a snapshot, or damage to the store, the next snapshot is correct."""

from __future__ import annotations

import errno
import hashlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from tests.snapshot import sending
from tests.snapshot.test_take import content, on_disk
from yurt.errors import RefusedError, UserError
from yurt.snapshot import Snapshot, collect, objects, record, send, take
from yurt.transport.local import LocalHost

HERE = LocalHost()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    (root / "d" / "e").mkdir(parents=True)
    for number in range(12):
        (root / ("d/e" if number % 2 else "d") / str(number)).write_text(f"text {number} " * 400)
    return root


def sound(store: Path, tree: str) -> None:
    """Git finds every object of a tree, and no error in any."""
    done = subprocess.run(
        ["git", f"--git-dir={store}", "fsck", "--full", "--strict", "--no-progress", tree],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def everything(root: Path) -> set[bytes]:
    return {os.fsencode(path.relative_to(root)) for path in root.rglob("*") if path.is_symlink() or not path.is_dir()}


def in_child(do: Callable[[], object], user: int | None = None) -> int:
    """Result of a function in a separate process."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            if user is not None:
                os.setgroups([])
                os.setgid(user)
                os.setuid(user)
            do()
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


WRITING = {"_make", "record", "place", "finish", "save"}
"""The functions that write: the process is killed at the start or end of each call from one of them."""


@pytest.mark.parametrize("many", [1, 1000], ids=["as a pack", "one by one"])
def test_killed_at_any_moment(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, many: int) -> None:
    monkeypatch.setattr(record, "MANY", many)
    monkeypatch.setattr(record, "READERS", 1)
    expected = take(project, tmp_path / "undisturbed.git").tree
    killed = 0
    for moment in range(1, 10_000, 9):
        store = tmp_path / "stores" / str(moment)
        steps = iter(range(moment))

        def count(frame: FrameType, event: str, _what: Any, steps: Any = steps) -> None:
            here = frame if event.startswith("c_") else frame.f_back
            if here is not None and here.f_code.co_name in WRITING and next(steps, None) is None:
                os.kill(os.getpid(), signal.SIGKILL)

        def interrupted(store: Path = store, count: Any = count) -> None:
            sys.setprofile(count)
            take(project, store)

        if in_child(interrupted) != -signal.SIGKILL:
            break
        killed += 1
        assert take(project, store).tree == expected, moment
        sound(store, expected)
        assert not (store / "aside").exists()
    assert killed > 20


def wrong_bit(old: bytes) -> bytes:
    """In the id of a file."""
    at = old.index(objects.identify(b"blob", b"text 0 " * 400))
    return old[:at] + bytes([old[at] ^ 1]) + old[at + 1 :]


def other_format(_old: bytes) -> bytes:
    """For example from another version of yurt."""
    content = b"\x93\x01\x02\x03"
    return hashlib.sha1(content).digest() + content


DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "nothing": lambda old: old[:0],
    "cut": lambda old: old[: len(old) // 2],
    "zeros": lambda old: bytes(len(old)),
    "wrong bit": wrong_bit,
    "other format": other_format,
}


@pytest.mark.parametrize("damage", list(DAMAGE))
@pytest.mark.parametrize("many", [1, 1000], ids=["as a pack", "one by one"])
def test_damaged_list_of_files(
    project: Path, store: Path, monkeypatch: pytest.MonkeyPatch, damage: str, many: int
) -> None:
    monkeypatch.setattr(record, "MANY", many)
    monkeypatch.setattr("yurt.snapshot.seen.TICK", -10_000_000_000)
    first = take(project, store)
    seen = store / "seen"
    seen.write_bytes(DAMAGE[damage](seen.read_bytes()))
    before = sorted(str(path) for path in (store / "objects").rglob("*"))
    assert take(project, store) == first
    assert sorted(str(path) for path in (store / "objects").rglob("*")) == before, "nothing was written twice"
    seen.write_bytes(DAMAGE[damage](seen.read_bytes()))
    (project / "d" / "2").write_text("changed")
    second = take(project, store)
    assert content(second) == on_disk(project, everything(project))
    sound(store, second.tree)


@pytest.mark.parametrize("many", [1, 1000], ids=["as a pack", "one by one"])
@pytest.mark.parametrize("known", [(), ("plain",), ("base",)])
def test_damaged_objects_are_detected_and_rebuilt(
    project: Path, store: Path, monkeypatch: pytest.MonkeyPatch, many: int, known: tuple[str, ...]
) -> None:
    monkeypatch.setattr(record, "MANY", many)
    base = take(project, store)
    (project / "d" / "new").write_text("new")
    snapshot = take(project, store)
    trees = {snapshot.tree, base.tree}
    for path in (store / "objects").rglob("*"):
        if path.is_file() and path.suffix != ".idx" and path.parent.name + path.name not in trees:
            path.chmod(0o600)
            path.write_bytes(bytes(path.stat().st_size))
    words = [base.tree if word == "base" else word for word in known]
    with pytest.raises(RefusedError, match="damaged") as caught:
        send.code_for(snapshot, words)
    assert caught.value.code == "git-failed" and "run the command again" in caught.value.hint
    again = take(project, store)
    assert again == snapshot
    sound(store, again.tree)
    sending.send(HERE, again, str(store.parent / "far"))
    # A snapshot of the old store is missing, but the new store is not damaged.
    with pytest.raises(RefusedError, match="neither on the site nor on this machine"):
        send.code_for(base, ())
    assert take(project, store) == snapshot
    sound(store, snapshot.tree)
    subprocess.run(["chmod", "-R", "u+w", str(store.parent)], check=True)


def test_a_pack_with_a_flipped_bit_is_not_uploaded(project: Path, store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record, "MANY", 1)
    snapshot = take(project, store)
    pack = store / "objects" / "pack" / f"pack-{snapshot.tree}.pack"
    old = pack.read_bytes()
    pack.write_bytes(old[:500] + bytes([old[500] ^ 1]) + old[501:])
    with pytest.raises(RefusedError, match="a pack is damaged"):
        send.code_for(snapshot, ())
    assert take(project, store) == snapshot
    sound(store, snapshot.tree)
    send.code_for(snapshot, ())


@pytest.mark.parametrize("forgetful", [False, True])
def test_an_incomplete_pack_is_not_treated_as_complete(
    project: Path, store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, forgetful: bool
) -> None:
    """Files that are unchanged or already in the store are not in the new pack, though every folder is."""
    monkeypatch.setattr("yurt.snapshot.seen.TICK", -10_000_000_000)
    take(project, store)
    monkeypatch.setattr(record, "MANY", 1)
    for number in (1, 2):
        (project / ("d/e" if number % 2 else "d") / str(number)).write_text("changed")
    (project / "top").write_text("new")
    if forgetful:
        (store / "seen").unlink()
    snapshot = take(project, store)
    sending.send(HERE, snapshot, str(tmp_path / "far"))
    checkout = tmp_path / "far" / "snapshots" / snapshot.tree
    assert on_disk(checkout, everything(checkout)) == on_disk(project, everything(project))
    subprocess.run(["chmod", "-R", "u+w", str(tmp_path)], check=True)


def test_only_what_is_new_is_written(project: Path, store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if the existing objects are in a pack, where they have to be searched."""
    monkeypatch.setattr(record, "MANY", 1)
    take(project, store)
    monkeypatch.setattr(record, "MANY", 1000)
    before = set((store / "objects").rglob("*"))
    (project / "d" / "0").write_text("changed")
    take(project, store)
    written = [path for path in set((store / "objects").rglob("*")) - before if path.is_file()]
    assert len(written) == 3, "the file, its folder, the top"


def test_offsets_beyond_two_gigabytes(project: Path, store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Git reads such offsets correctly; and, with the limit lowered to a thousand bytes, a complete pack."""
    offsets = {bytes([number] * 20): number << 28 for number in range(1, 40)}
    index = objects._pack_index({id: (0, offset) for id, offset in offsets.items()}, bytes(20))
    read = subprocess.run(["git", "show-index"], input=index, capture_output=True, check=True).stdout.split()
    assert {
        bytes.fromhex(id.decode()): int(offset) for offset, id in zip(read[::3], read[1::3], strict=True)
    } == offsets
    monkeypatch.setattr(objects, "FAR", 1000)
    monkeypatch.setattr(record, "MANY", 1)
    snapshot = take(project, store)
    assert content(snapshot) == on_disk(project, everything(project))
    sound(store, snapshot.tree)


def meanwhile(monkeypatch: pytest.MonkeyPatch, what: Callable[[], object]) -> None:
    """Run something after the files are listed and before they are read."""
    files = collect.Collecting.files

    def then(self: collect.Collecting) -> collect.Files:
        found = files(self)
        what()
        return found

    monkeypatch.setattr(collect.Collecting, "files", then)


@pytest.mark.parametrize("many", [1, 1000], ids=["as a pack", "one by one"])
@pytest.mark.timeout(30)
def test_files_that_vanish_or_change_during_a_snapshot(
    project: Path, store: Path, monkeypatch: pytest.MonkeyPatch, many: int
) -> None:
    monkeypatch.setattr(record, "MANY", many)

    def disturb() -> None:
        (project / "d" / "0").unlink()
        (project / "d" / "2").unlink()
        os.mkfifo(project / "d" / "2")
        (project / "d" / "4").unlink()
        (project / "d" / "4").symlink_to("6")
        (project / "d" / "6").write_text("short")
        (project / "d" / "8").unlink()
        (project / "d" / "8").mkdir()
        (project / "d" / "8" / "x").write_text("x")
        for path in (project / "d" / "e").iterdir():
            path.unlink()
        (project / "d" / "e").rmdir()
        (project / "d" / "e").write_text("a file where a folder was")

    with monkeypatch.context() as patch:
        meanwhile(patch, disturb)
        snapshot = take(project, store)
    assert content(snapshot) == on_disk(project, {b"d/4", b"d/6", b"d/10"})
    assert snapshot.files == 3
    sound(store, snapshot.tree)
    (project / "d" / "2").unlink()
    assert content(take(project, store)) == on_disk(project, everything(project))


@pytest.mark.timeout(30)
def test_a_file_that_changes_its_type_between_stat_and_open(
    project: Path, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pipe does not block, and a link is stored as a link."""
    regular, look = os.lstat(project / "d" / "6"), os.lstat
    for name in ("2", "4"):
        (project / "d" / name).unlink()
    os.mkfifo(project / "d" / "2")
    (project / "d" / "4").symlink_to("6")
    lies = {os.fsencode(project / "d" / name) for name in ("2", "4")}

    def look_late(path: bytes) -> os.stat_result:
        if path in lies:
            lies.remove(path)
            return regular
        return look(path)

    def disturb() -> None:
        monkeypatch.setattr(os, "lstat", look_late)

    files = collect.Collecting.files
    monkeypatch.setattr(collect.Collecting, "files", lambda self: {**files(self), b"d/2": regular})
    meanwhile(monkeypatch, disturb)
    snapshot = take(project, store)
    monkeypatch.undo()
    assert not lies
    assert content(snapshot) == on_disk(project, everything(project) - {b"d/2"})


def test_a_file_that_becomes_a_folder_during_the_listing(project: Path, store: Path) -> None:
    """Then both are listed, and only one can exist."""
    blob = objects.identify(b"blob", b"")
    files = {b"d/e": (0o100644, blob), b"d/e/1": (0o100644, blob), b"d.c": (0o100644, blob)}
    take(project, store)
    top, folders = objects.write_folders(files, objects.Loose(store, project))
    objects.Loose(store, project).add(b"blob", b"")
    sound(store, objects.Loose(store, project).add(b"tree", top).hex())
    assert len(folders) == 2


def refused(project: Path, store: Path, wanted: str) -> Callable[[], None]:
    def attempt() -> None:
        with pytest.raises(UserError) as caught:
            take(project, store)
        assert caught.value.message == f"cannot read '{wanted}': Permission denied"
        assert f"--exclude '{wanted}'" in caught.value.hint and caught.value.code == "usage"
        assert take(project, store, exclude=[wanted]).files == 13

    return attempt


@pytest.mark.parametrize("many", [1, 1000], ids=["as a pack", "one by one"])
def test_unreadable_file_is_named(project: Path, monkeypatch: pytest.MonkeyPatch, many: int) -> None:
    monkeypatch.setattr(record, "MANY", many)
    (project / "d" / "secret").write_text("secret")
    (project / "d" / "other").write_text("not")
    (project / "d" / "secret").chmod(0)
    assert as_nobody(project, "d/secret") == 0


def test_file_in_an_unreadable_folder_is_named(project: Path) -> None:
    subprocess.run(
        "git init -q; mkdir shut; echo x > shut/x; echo o > o; git add -A; chmod 0 shut",
        shell=True,
        cwd=project,
        check=True,
    )
    try:
        assert as_nobody(project, "shut/x") == 0
    finally:
        (project / "shut").chmod(0o700)


def as_nobody(project: Path, wanted: str) -> int:
    """The attempt by a user who is not root, in a folder of their own."""
    if os.geteuid() != 0:
        return in_child(refused(project, project.parent / "theirs.git", wanted))
    place = Path(f"/tmp/yurt-nobody-{os.getpid()}")
    subprocess.run(["rm", "-rf", str(place)], check=True)
    place.mkdir()
    try:
        subprocess.run(["cp", "-a", str(project), str(place / "p")], check=True)
        subprocess.run(["chown", "-R", "65534:65534", str(place)], check=True)
        return in_child(refused(place / "p", place / "theirs.git", wanted), user=65534)
    finally:
        subprocess.run(["rm", "-rf", str(place)], check=True)


@pytest.mark.parametrize("many", [1, 1000], ids=["as a pack", "one by one"])
@pytest.mark.parametrize("code", ["disk-full", "quota-full"])
def test_full_disk(project: Path, store: Path, monkeypatch: pytest.MonkeyPatch, many: int, code: str) -> None:
    monkeypatch.setattr(record, "MANY", many)
    number = {"disk-full": errno.ENOSPC, "quota-full": errno.EDQUOT}[code]

    def full(_descriptor: int) -> None:
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patch, pytest.raises(RefusedError) as caught:
        patch.setattr(os, "fsync", full)
        take(project, store)
    assert caught.value.code == code
    sound(store, take(project, store).tree)


def test_a_snapshot_is_its_files(project: Path, store: Path) -> None:
    snapshot = take(project, store)
    assert snapshot == Snapshot(
        snapshot.tree, 12, sum(p.stat().st_size for p in project.rglob("*") if p.is_file()), store
    )
