"""Logs of W&B from a site: one that names files of this machine is not given to wandb."""

from __future__ import annotations

import zlib
from pathlib import Path

import pytest

from yurt.tracking import wandb_folders as wandb
from yurt.tracking import wandb_log
from yurt.tracking.wandb_log import BLOCK, CHUNK, FIRST, FULL, HEAD, LAST


def field(number: int, content: bytes | str) -> bytes:
    """Return a field of a protobuf message that has a length."""
    content = content.encode() if isinstance(content, str) else content
    return _number(number << 3 | 2) + _number(len(content)) + content


def _number(value: int) -> bytes:
    found = b""
    while value > 0x7F:
        found, value = found + bytes([value & 0x7F | 0x80]), value >> 7
    return found + bytes([value])


def part(kind: int, content: bytes) -> bytes:
    return CHUNK.pack(zlib.crc32(content, zlib.crc32(bytes([kind]))), len(content), kind) + content


def log(*records: bytes) -> bytes:
    return HEAD + b"".join(part(FULL, each) for each in records)


def saved(path: str) -> bytes:
    return field(6, field(1, field(1, path)))


def artifact(path: Path | str) -> bytes:
    return field(8, field(12, field(4, field(1, "name") + field(6, str(path)))))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "key").write_text("private")
    made = tmp_path / "copies" / "offline-run-1"
    (made / "files").mkdir(parents=True)
    return made


def problem(folder: Path, content: bytes) -> str:
    file = folder / "run-x.wandb"
    file.write_bytes(content)
    return wandb_log.problem(file, folder / "files", folder.parent / "own")


def test_what_names_files_of_this_machine(folder: Path, tmp_path: Path) -> None:
    key = tmp_path / "key"
    for record, what in (
        (saved("../../../key"), "a file to save"),
        (saved("../../../k*"), "a file to save"),
        (saved(str(key)), "a file to save"),
        (artifact(key), "a file of an artifact"),
        (field(8, field(12, field(5, str(key)))), "the manifest of an artifact"),
        (field(9, field(1, str(tmp_path))), "a folder of TensorBoard"),
    ):
        why = problem(folder, log(field(2, "history"), record))
        assert why.startswith("its log names ") and why.endswith(f" of this machine as {what}"), why
    assert problem(folder, log(field(100, field(14, "x")))) == "its log cannot be read: it contains a request"


def test_what_runs_write_is_uploaded(folder: Path) -> None:
    own = folder.parent / "own" / "tmp1"
    own.parent.mkdir()
    own.touch()
    usual = log(saved("media/t.json"), artifact("/home/of/the/site/tmp1"), artifact(own), b"\x08\x01", field(2, "x"))
    assert problem(folder, usual) == problem(folder, b"") == problem(folder, usual[:-1]) == ""
    assert problem(folder, usual + bytes(3 * BLOCK)) == ""


def test_a_record_in_several_blocks(folder: Path) -> None:
    record = field(2, bytes(BLOCK)) + saved("/x")
    at = BLOCK - len(HEAD) - CHUNK.size
    content = HEAD + part(FIRST, record[:at]) + part(LAST, record[at:])
    assert problem(folder, content) == "its log names '/x' of this machine as a file to save"
    damaged = content.replace(b"\0\0\0\0", b"\0\0\1\0", 1)
    assert problem(folder, damaged) == "its log cannot be read: it is damaged"


@pytest.mark.parametrize("content", [b"other", log(b"\x0b"), log(b"\x12\x7f"), log(b"\x12" + b"\xff" * 12)])
def test_what_is_no_log(content: bytes, folder: Path) -> None:
    assert problem(folder, content).startswith("its log cannot be read: ")


def test_such_a_log_is_not_given_to_wandb(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wandb, "home", lambda: tmp_path)
    (folder / "run-x.wandb").write_bytes(log(saved("/etc/passwd")))
    call = ["sh", "-c", f"touch {tmp_path}/called; echo done.", "wandb"]
    assert "/etc/passwd" in wandb.upload(call, folder, {}, lambda _line: None)
    assert not (tmp_path / "called").exists()
    assert wandb.upload(call, folder, {}, lambda _line: None, from_site=False) == ""
    assert (tmp_path / "called").exists()
