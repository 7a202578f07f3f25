"""Versions that somebody else wrote: a restore reads, writes and changes nothing outside of its target."""

from __future__ import annotations

import contextlib
import io
import json
import os
import tarfile
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.node.backup.trees import fingerprint
from yurt.node.backup import BackupError, manifest, restore, tar_headers

FOLDER, FILE, LINK, FIFO = 0o40700, 0o100777, 0o120777, 0o10600
Row = list[Any]


def row(path: str, mode: int, pack: int = -1, extra: str = "", size: int = 0) -> Row:
    return [path, mode, size, 10**18, pack, extra, ""]


def member(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> tarfile.TarInfo:
    found = tarfile.TarInfo(name)
    found.type, found.linkname, found.mode, found.mtime = kind, link, 0o777, 10**9
    found.size = 3 if kind == tarfile.REGTYPE else 0
    return found


class Backups:
    """A backups folder made by hand, beside files of the user that a restore must leave alone."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.target = folder / "backups", folder / "restores" / "target"
        self.outside = folder / "home"
        for each in (self.folder, self.outside, self.target.parent):
            each.mkdir()
        (self.outside / "f").write_text("own")
        (self.outside / "f").chmod(0o600)
        (self.outside / "empty").mkdir()
        self.packs: list[Row] = []

    def pack(self, *members: tarfile.TarInfo) -> None:
        stream = io.BytesIO()
        with tarfile.open(fileobj=stream, mode="w:gz", format=tarfile.PAX_FORMAT) as archive:
            for each in members:
                archive.addfile(each, io.BytesIO(b"bad"[: each.size]))
        name, content = f"p1-{len(self.packs)}.tar.gz", stream.getvalue()
        (self.folder / name).write_bytes(content)
        self.packs.append([name, len(content), f"{zlib.crc32(content):08x}", 3 * len(members), len(members)])

    def write(self, rows: Sequence[Row], index: str = "i1-x") -> None:
        header = {"version": {"number": 1, "id": "x"}, "packs": self.packs, "index": index}
        index_header = {"packs": [each[0] for each in self.packs]}
        (self.folder / index).write_bytes(manifest.encode(index_header, [row(".", FOLDER), *rows]))
        (self.folder / "v1").write_bytes(manifest.encode(header, []))


@pytest.fixture
def backups(tmp_path: Path) -> Backups:
    return Backups(tmp_path)


def a_folder_above(made: Backups) -> None:
    made.write([row("../../home/new", FOLDER)])


def an_absolute_folder(made: Backups) -> None:
    made.write([row(str(made.outside / "new"), FOLDER)])


def a_pipe_behind_a_link(made: Backups) -> None:
    made.write([row("a", LINK, extra=str(made.outside)), row("a/new", FIFO)])


def a_mode_behind_a_link_of_the_archive(made: Backups) -> None:
    made.pack(member("d", tarfile.SYMTYPE, "../../home"), member("f"))
    made.write([row("f", FILE, 0, size=3), row("d", FOLDER), row("d/f", FILE, size=3)])


def a_file_behind_a_link_of_another_archive(made: Backups) -> None:
    made.pack(member("a"), member("x", tarfile.SYMTYPE, str(made.outside)))
    made.pack(member("x/new"))
    made.write([row("a", FILE, 0, size=3), row("x/new", FILE, 1, size=3)])


def a_file_of_the_user_moved_into_the_target(made: Backups) -> None:
    made.pack(member("a"))
    made.write([row("b", FILE, 0, extra="../../../home/f", size=3)])


def a_hard_link_to_a_file_of_the_user(made: Backups) -> None:
    made.pack(member("a"), member("b", tarfile.LNKTYPE, "../../home/f"))
    made.write([row("a", FILE, 0, size=3), row("b", FILE, 0, size=3)])


def a_pack_elsewhere(made: Backups) -> None:
    made.pack(member("a"))
    (made.folder / made.packs[0][0]).rename(made.outside / "p.tar.gz")
    made.packs[0][0] = "p/../../home/p.tar.gz"
    (made.folder / "p").mkdir()
    made.write([row("a", FILE, 0, size=3)])


def an_index_elsewhere(made: Backups) -> None:
    made.write([], index=str(made.outside / "i1"))


def words_for_numbers(made: Backups) -> None:
    made.write([["a", "x", None, {}, -1, 3, 4]])


def a_null_byte(made: Backups) -> None:
    made.write([row("a\0b", FOLDER)])


def attributes_of_another_form(made: Backups) -> None:
    made.write([row("a", FOLDER, extra=json.dumps({"user.x\0": 3}))])


@pytest.mark.parametrize(
    "attack",
    [
        a_folder_above,
        an_absolute_folder,
        a_pipe_behind_a_link,
        a_mode_behind_a_link_of_the_archive,
        a_file_behind_a_link_of_another_archive,
        a_file_of_the_user_moved_into_the_target,
        a_hard_link_to_a_file_of_the_user,
        a_pack_elsewhere,
        an_index_elsewhere,
        words_for_numbers,
        a_null_byte,
        attributes_of_another_form,
    ],
)
def test_a_hostile_version(attack: Callable[[Backups], None], backups: Backups) -> None:
    attack(backups)
    before = fingerprint(backups.outside)
    with contextlib.suppress(BackupError):
        restore(str(backups.folder), 1, str(backups.target))
    assert fingerprint(backups.outside) == before
    assert [each.name for each in backups.target.parent.iterdir()] in ([], ["target"])
    assert not list(backups.target.rglob("f")), "a file of the user is in the target"


def test_what_a_pack_has_besides_the_files_of_the_version_is_left_out(backups: Backups) -> None:
    names = ("x", tarfile.SYMTYPE), ("y", tarfile.DIRTYPE), ("../z", tarfile.REGTYPE), ("dev", tarfile.CHRTYPE)
    backups.pack(*(member(name, kind, "/") for name, kind in names), member("b"), member("a"))
    backups.write([row("a", FILE, 0, size=3), row("c", FILE, 0, extra="b", size=3)])
    restore(str(backups.folder), 1, str(backups.target))
    assert {each.name: each.read_bytes() for each in backups.target.iterdir()} == {"a": b"bad", "c": b"bad"}
    assert [each.name for each in backups.target.parent.iterdir()] == ["target"]


def _archive(*members: tarfile.TarInfo) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for each in members:
            archive.addfile(each, io.BytesIO(b"\x01" * each.size))
    return stream.getvalue()


def _sparse(map_: bytes, major: str = "1") -> bytes:
    found = member("GNUSparseFile/a")
    found.pax_headers = {"GNU.sparse.major": major, "GNU.sparse.minor": "0", "GNU.sparse.name": "a"}
    found.size = 1024
    return _archive(found).replace(b"\x01" * 1024, map_.ljust(512, b"\0") + b"c" * 512, 1)


def _damaged(content: bytes, *changes: tuple[bytes, bytes]) -> bytes:
    for old, new in changes:
        content = content.replace(old, new, 1)
    return content


@pytest.mark.parametrize(
    "content",
    [
        _sparse(b"1\n0\n9999\n"),  # tar would take the next header for content, and content for the next header
        _sparse(b"-1\n"),
        _sparse(b"99999999\n"),
        _sparse(b"1\n0\n512\n", major="0"),
        _damaged(_archive(member("a")), (b"0000777", b"0000776")),  # the checksum of the header
        _damaged(_archive(member("a")), (b"00000000003", b"0o000000003")),
        _damaged(_sparse(b"1\n0\n512\n"), (b"22 GNU", b" 0 GNU")),
    ],
    ids=["large part", "negative", "long map", "old map", "checksum", "octal", "record"],
)
def test_an_archive_that_tar_could_read_in_another_way(content: bytes) -> None:
    pieces = iter([content, b""])
    with pytest.raises((tar_headers.Damaged, ValueError)):
        tar_headers.pick(lambda: next(pieces), {b"a"}, bytearray().extend)


def test_a_sparse_file_is_passed_on() -> None:
    whole = _sparse(b"1\n0\n512\n")
    for size in (1, 100, 512, 5000):
        pieces, found = iter([*(whole[at : at + size] for at in range(0, len(whole), size)), b""]), bytearray()
        tar_headers.pick(lambda pieces=pieces: next(pieces), {b"a"}, found.extend)  # type: ignore[misc]
        assert found.rstrip(b"\0") == whole.rstrip(b"\0"), os.linesep
