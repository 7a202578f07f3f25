"""The file for the errors of a stream has no name, with and without O_TMPFILE."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from yurt.transport import base


@pytest.mark.parametrize("how", ["as it is", "no O_TMPFILE", "no such folder"])
def test_a_file_without_a_name(how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path if how != "no such folder" else tmp_path / "none"))
    if how == "no O_TMPFILE":
        monkeypatch.delattr(os, "O_TMPFILE", raising=False)
        monkeypatch.setattr(tempfile, "_O_TMPFILE_WORKS", False, raising=False)
    with base._unnamed_file() as file:
        file.write(b"text")
        file.seek(0)
        assert file.read() == b"text"
        assert os.fstat(file.fileno()).st_nlink == 0
        assert os.fstat(file.fileno()).st_mode & 0o777 == 0o600
        assert not list(tmp_path.iterdir())
