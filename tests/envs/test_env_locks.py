"""A lock that is damaged on this machine is read from the site again."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from yurt.contexts import connect
from yurt.envs.declared import Declared
from yurt.envs.lock import Lock
from yurt.envs.of_runs import locks
from yurt.model.context import Context
from yurt.model.env import EnvState

CONTEXT = Context(name="big", type="slurm")
OTHER = Context(name="other", type="slurm")
LOCK = "six==1.17.0\n"
TEXT = b"six\none @ https://mine.example/w/one-2.tar.gz\n--extra-index-url https://ada:pass@mine.example/simple\n"
DECLARED = Declared(kind="requirements", files={"requirements.txt": TEXT})


@pytest.mark.parametrize("content", [b"", b"{garbage", b"\xff\xfe\x00"])
def test_a_damaged_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
    monkeypatch.setenv("YURT_DATA_HOME", str(tmp_path))
    state = EnvState(folder="/base/envs/0123", condition="ready", lock=LOCK)
    envs = SimpleNamespace(look=lambda _folders: [state])
    monkeypatch.setattr(connect, "backend", lambda _context: SimpleNamespace(envs=envs))
    file = locks.file("0123")
    file.parent.mkdir(parents=True)
    file.write_bytes(content)
    assert locks.known(CONTEXT, ["/base"], DECLARED, "0123") == Lock(LOCK)
    assert locks.file("0123", "big").read_text() == LOCK, "and kept"
    envs.look = lambda _folders: []
    assert locks.known(CONTEXT, ["/base"], DECLARED, "0123") == Lock(LOCK)
    assert locks.known(OTHER, ["/base"], DECLARED, "0123") is None, "another site gets no packages that this one named"


@pytest.mark.parametrize(
    ("lock", "is_used"),
    [
        ("six==1.17.0 \\\n    --hash=sha256:" + "0" * 64 + "\n", True),
        ("--extra-index-url https://mine.example/simple\nsix==1.17.0\n", True),
        ("# wheelhouse six /sw/six-1.17.0-py3-none-any.whl\nsix==1.17.0\n", True),
        ("one @ https://mine.example/w/one-1.tar.gz\n", True),
        ("# torch-backend: cpu\n# no packages\n", True),
        ("--index-url https://evil.example/simple\nsix==1.17.0\n", False),
        ("--find-links /home/me\nsix==1.17.0\n", False),
        ("one @ https://evil.example/one-1.tar.gz\n", False),
        ("one @ file:///home/me/one-1.tar.gz\n", False),
        ("one @ git+https://evil.example/one\n", False),
        ("-e git+https://evil.example/one#egg=one\n", False),
        ("-r /home/me/requirements.txt\n", False),
        ("./one\n", False),
        ("six==1.17.0 --index-url https://evil.example\n", False),
    ],
)
def test_a_lock_of_a_site_with_other_addresses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lock: str, *, is_used: bool
) -> None:
    """This machine would download from them."""
    monkeypatch.setenv("YURT_DATA_HOME", str(tmp_path))
    state = EnvState(folder="/base/envs/0123", condition="ready", lock=lock)
    envs = SimpleNamespace(look=lambda _folders: [state])
    monkeypatch.setattr(connect, "backend", lambda _context: SimpleNamespace(envs=envs))
    assert (locks.known(CONTEXT, ["/base"], DECLARED, "0123") is not None) == is_used
