"""Of a run with one log that is wanted, the other, which may be long, is not read."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from yurt.backends.shell import logs
from yurt.model.files import LogPosition, Stream


@pytest.mark.parametrize(("only", "sent"), [("out", b"out 4\nlong"), ("err", b"err 5\nshort"), (None, None)])
def test_only_the_wanted_log_is_sent(tmp_path: Path, only: Stream | None, sent: bytes | None) -> None:
    (tmp_path / "out.log").write_text("long")
    (tmp_path / "err.log").write_text("short")
    log = LogPosition("x", str(tmp_path), only=only)
    argv = ["sh", "-c", logs.script(many=False), "sh", *logs._arguments(log, None), "", str(logs.AT_ONCE)]
    done = subprocess.run(argv, capture_output=True, check=True)
    assert done.stdout == (sent or b"out 4\nlongerr 5\nshort")
