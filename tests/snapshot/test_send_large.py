"""Large code arrives in pieces: continued after an interruption, verified, never mixed with other content."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.snapshot.conftest import assert_arrived
from yurt.backends import scripts
from yurt.backends.answers import CodeParcel
from yurt.backends.shell.code import ShellCode
from yurt.errors import RefusedError, UnreachableError
from yurt.snapshot import Snapshot, send, take
from yurt.transport.local import LocalHost

SIZE = 3_000_000


class Halt(Exception):
    """Stops an upload."""


@pytest.fixture
def snapshot(project: Path, store: Path) -> Snapshot:
    (project / "large").write_bytes(os.urandom(SIZE))
    return take(project, store)


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path / "storage" / "yurt" / "projects" / "far"
    subprocess.run(["chmod", "-R", "u+w", str(tmp_path)], check=True)


def parcel(snapshot: Snapshot, *known: str) -> CodeParcel:
    code = send.code_for(snapshot, known)
    return CodeParcel(kind=code.kind, base=code.base, content=code.content)


def upload(folder: Path, snapshot: Snapshot, code: CodeParcel, *, resume: bool = False, halt: int = -1) -> list[int]:
    """Upload code; stop after `halt` bytes. Return the reports of the receiver."""
    reports: list[int] = []

    def moved(count: int) -> None:
        reports.append(count)
        if halt >= 0 and count >= halt:
            raise Halt

    assert ShellCode(LocalHost()).upload(str(folder), snapshot.tree, code, resume=resume, moved=moved) == "complete"
    return reports


def parts(folder: Path) -> list[Path]:
    return sorted((folder / "incoming").glob("part-*"))


def interrupted(folder: Path, snapshot: Snapshot, code: CodeParcel) -> Path:
    with pytest.raises(Halt):
        upload(folder, snapshot, code, halt=SIZE // 2)
    (part,) = parts(folder)
    return part


@pytest.mark.parametrize("kind", ["git", "plain"])
def test_an_interrupted_upload_continues(folder: Path, project: Path, snapshot: Snapshot, kind: str) -> None:
    code = parcel(snapshot, *(["plain"] if kind == "plain" else []))
    part = interrupted(folder, snapshot, code)
    assert part.name.startswith(f"part-{code.digest}.") and part.stat().st_mode & 0o077 == 0
    reports = upload(folder, snapshot, code, resume=True)
    assert reports[0] >= SIZE // 2 - 65536 and reports[-1] == len(code.content)
    assert_arrived(LocalHost(), project, str(folder), snapshot.tree)
    assert os.listdir(folder / "incoming") == []


def test_a_part_of_other_content_is_not_used(folder: Path, project: Path, store: Path, snapshot: Snapshot) -> None:
    part = interrupted(folder, snapshot, parcel(snapshot))
    before = part.read_bytes()
    (project / "large").write_bytes(os.urandom(SIZE))
    other = take(project, store)
    assert upload(folder, other, parcel(other), resume=True)[0] == 0
    assert part.read_bytes() == before, "it is kept for its own upload"
    part.unlink()
    assert_arrived(LocalHost(), project, str(folder), other.tree)


def test_a_damaged_part_is_uploaded_again(folder: Path, project: Path, snapshot: Snapshot) -> None:
    part = interrupted(folder, snapshot, parcel(snapshot))
    part.write_bytes(bytes(part.stat().st_size))
    reports = upload(folder, snapshot, parcel(snapshot), resume=True)
    assert reports[0] > SIZE // 3 and reports.count(reports[-1]) == 2, "twice to the end"
    assert_arrived(LocalHost(), project, str(folder), snapshot.tree)


def test_an_earlier_receiver_that_still_writes_does_no_harm(folder: Path, project: Path, snapshot: Snapshot) -> None:
    part = interrupted(folder, snapshot, parcel(snapshot))
    with part.open("ab") as earlier:
        reports = upload(folder, snapshot, parcel(snapshot), resume=True)
        earlier.write(b"late bytes of a connection that was thought dead")
    assert reports[0] > 0
    assert_arrived(LocalHost(), project, str(folder), snapshot.tree)


def test_parts_are_kept_for_a_day(folder: Path, project: Path, snapshot: Snapshot) -> None:
    part = interrupted(folder, snapshot, parcel(snapshot))
    subprocess.run(["touch", "-d", "25 hours ago", str(part)], check=True)
    assert upload(folder, snapshot, parcel(snapshot), resume=True)[0] == 0
    assert parts(folder) == []


def test_an_empty_part_is_removed(folder: Path, snapshot: Snapshot) -> None:
    """Its receiver was killed before the first piece."""
    code = parcel(snapshot)
    interrupted(folder, snapshot, code).write_bytes(b"")
    assert upload(folder, snapshot, code, resume=True)[0] == 0
    assert parts(folder) == []


def test_without_an_interruption_no_offset_is_asked_for(folder: Path, snapshot: Snapshot) -> None:
    """The first report follows the first piece; with `resume`, it comes before, and costs a round trip."""
    reports = upload(folder, snapshot, parcel(snapshot))
    assert reports[0] >= 65536


def test_a_full_disk(folder: Path, snapshot: Snapshot, monkeypatch: pytest.MonkeyPatch) -> None:
    receiver = scripts.receiver()
    full = "head() { echo 'head: error writing: No space left on device' >&2; return 1; }\n"
    monkeypatch.setattr(scripts, "receiver", lambda: receiver + full)
    with pytest.raises(RefusedError, match="the disk is full"):
        upload(folder, snapshot, parcel(snapshot))
    assert parts(folder) == [], "the part does not occupy the full disk"


def test_input_that_ends_early(folder: Path, snapshot: Snapshot) -> None:
    code = parcel(snapshot)
    script = scripts.receiver() + scripts.text("receive_large.sh") + 'receive_large "$@"'
    words = (str(folder), code.kind, snapshot.tree, code.base, str(len(code.content)), code.digest, "a", "", "65536")
    answer = LocalHost().run(script, *words, stdin=code.content[: SIZE // 3])
    assert answer.code == 45 and parts(folder)[0].stat().st_size == SIZE // 3
    assert parts(folder)[0].name.endswith(".closed"), "nothing writes to it any more"
    assert upload(folder, snapshot, code, resume=True)[0] == SIZE // 3


def test_a_base_that_is_missing(folder: Path, project: Path, store: Path, snapshot: Snapshot) -> None:
    (project / "other").write_bytes(os.urandom(SIZE))
    second = take(project, store)
    code = parcel(second, snapshot.tree)
    found = ShellCode(LocalHost()).upload(str(folder), second.tree, code, resume=False, moved=lambda _count: None)
    assert found == "no base" and parts(folder) == []


def test_packs_are_the_same_in_each_attempt(project: Path, store: Path, snapshot: Snapshot) -> None:
    """So that the second attempt continues the first."""
    for number in range(200):
        (project / f"text-{number}").write_text(f"line {number}\n" * 2000)
    second = take(project, store)
    assert len({parcel(second, snapshot.tree).digest for _try in range(5)}) == 1
    assert len({parcel(second).digest for _try in range(5)}) == 1


def test_the_receiver_disappears(folder: Path, snapshot: Snapshot, monkeypatch: pytest.MonkeyPatch) -> None:
    receiver = scripts.receiver()
    monkeypatch.setattr(scripts, "receiver", lambda: receiver + "sha256sum() { kill -9 0; }\n")
    with pytest.raises(UnreachableError):
        upload(folder, snapshot, parcel(snapshot))


@pytest.mark.parametrize(
    ("program", "kept"),
    [
        ("head() { [ $pieces -lt 9 ] || sh -c 'kill -9 $$' || return; command head \"$@\"; }", True),
        ("code_git() { sh -c 'kill -9 $$'; }", False),
        ("code_make() { sh -c 'kill -9 $$'; }", False),
    ],
)
def test_a_program_of_the_receiver_is_killed(
    folder: Path, project: Path, snapshot: Snapshot, monkeypatch: pytest.MonkeyPatch, *, program: str, kept: bool
) -> None:
    """As on a login node that limits memory. The run stays in the outbox; the next attempt continues."""
    with monkeypatch.context() as patch:
        receiver = scripts.receiver()
        patch.setattr(scripts, "receiver", lambda: f"{receiver}\n{program}\n")
        with pytest.raises(UnreachableError):
            upload(folder, snapshot, parcel(snapshot))
    assert bool(parts(folder)) == kept
    assert (upload(folder, snapshot, parcel(snapshot), resume=True)[0] > 0) == kept
    assert_arrived(LocalHost(), project, str(folder), snapshot.tree)
    assert list((folder / "incoming").iterdir()) == []
