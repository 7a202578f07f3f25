"""A lock that is damaged on this machine is read from the site again."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from yurt.contexts import connect
from yurt.envs.lock import Lock
from yurt.envs.of_runs import locks
from yurt.model.context import Context
from yurt.model.env import EnvState

CONTEXT = Context(name="big", type="slurm")
LOCK = "six==1.17.0\n"


@pytest.mark.parametrize("content", [b"", b"{garbage", b"\xff\xfe\x00"])
def test_a_damaged_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
    monkeypatch.setenv("YURT_DATA_HOME", str(tmp_path))
    state = EnvState(folder="/base/envs/0123", condition="ready", lock=LOCK)
    envs = SimpleNamespace(look=lambda _folders: [state])
    monkeypatch.setattr(connect, "backend", lambda _context: SimpleNamespace(envs=envs))
    file = locks.file("0123")
    file.parent.mkdir(parents=True)
    file.write_bytes(content)
    assert locks.known(CONTEXT, ["/base"], "0123") == Lock(LOCK)
    assert file.read_text() == LOCK, "and kept"
