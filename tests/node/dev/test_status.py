"""The status of a dev node on a disk that is full."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import pytest

from yurt.node.dev import status
from yurt.node.dev.status import Status


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_does_not_hide_the_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    found = Status(str(tmp_path), name="default")
    found.write()
    file = tmp_path / status.FILE

    def full(_path: str, _value: object) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(status, "write_json", full)
    found.set(failure="the disk is full")
    found.write()
    assert json.loads(file.read_text())["failure"] == "the disk is full"
    found.set(failure="")  # shorter than before
    found.write()
    assert json.loads(file.read_text())["failure"] == ""


def test_only_what_fits_is_overwritten(tmp_path: Path) -> None:
    file = tmp_path / "dev.json"
    file.write_text("{}\n")
    before = file.read_text()
    assert not status.overwrite(str(file), {"text": "x" * (1 << 20)}) and file.read_text() == before
    assert not status.overwrite(str(tmp_path / "absent"), {})
