"""Archives that are written as chunks: readable by tar, of the announced size, and equal from any position on."""

from __future__ import annotations

import io
import os
import tarfile
from pathlib import Path

import pytest

from yurt.errors import RefusedError
from yurt.transport import tar_stream


def test_an_archive(tmp_path: Path) -> None:
    (tmp_path / "a" / ("long" * 50)).mkdir(parents=True)
    (tmp_path / "a" / ("long" * 50) / "file").write_bytes(os.urandom(3_000_001))
    (tmp_path / "b").write_bytes(b"")
    (tmp_path / "c").write_bytes(b"x" * 512)
    (tmp_path / "link").symlink_to("l" * 150)
    entries, special = tar_stream.walk(str(tmp_path))
    whole = b"".join(tar_stream.chunks(entries))
    assert len(whole) == tar_stream.size(entries) and special == []
    with tarfile.open(fileobj=io.BytesIO(whole)) as archive:
        found = {each.name: each for each in archive}
        assert set(found) == {each.name for each in entries} and found["link"].linkname == "l" * 150
    for start in [0, 1, 511, 512, 513, 5_000, len(whole) - 1025, len(whole) - 1024, len(whole) - 3, len(whole)]:
        assert b"".join(tar_stream.chunks(entries, start)) == whole[start:], start
    for start in range(0, len(whole), 99_991):
        assert b"".join(tar_stream.chunks(entries, start)) == whole[start:], start


def test_a_file_that_changes(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"12345")
    entries, _special = tar_stream.walk(str(tmp_path))
    for content in (b"123", b"123456"):
        (tmp_path / "f").write_bytes(content)
        with pytest.raises(RefusedError, match="changed while it was read"):
            list(tar_stream.chunks(entries))
