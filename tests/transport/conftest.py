"""Hosts to test on: this machine, both clusters by ssh."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.user import end_masters
from yurt.lab import Lab
from yurt.transport.ssh import SshHost


@pytest.fixture(autouse=True)
def runtime(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """Give each test its own connections and close them at its end."""
    folder = Path(f"/tmp/yt-{abs(hash(str(tmp_path))) % 10**8}")
    monkeypatch.setenv("YURT_RUNTIME_DIR", str(folder))
    yield folder
    if folder.exists():
        end_masters(folder)


def site(lab: Lab, name: str, *more: str, user: str = "alice") -> SshHost:
    return SshHost(name, f"{user}@{name}", ["-F", str(lab.instance.client / "ssh_config"), *more])
