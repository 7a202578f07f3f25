"""What was understood of a file is remembered by its text: never something old, never something broken."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from yurt.config import contexts
from yurt.config.remembered import remembered
from yurt.errors import UserError


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("YURT_DATA_HOME", str(tmp_path))
    return tmp_path


def test_understood_once(home: Path) -> None:
    asked: list[str] = []

    def understand() -> dict[str, int]:
        asked.append("x")
        return {"a": len(asked)}

    assert remembered("kind", "text", dict[str, int], understand) == {"a": 1}
    assert remembered("kind", "text", dict[str, int], understand) == {"a": 1}
    assert remembered("kind", "other", dict[str, int], understand) == {"a": 2}
    (home / "cache" / "kind.json").write_bytes(b"{broken")
    assert remembered("kind", "other", dict[str, int], understand) == {"a": 3}
    assert (home / "cache" / "kind.json").stat().st_mode & 0o777 == 0o600


def test_faults_are_told_every_time(tmp_path: Path) -> None:
    file = tmp_path / "contexts.yaml"
    file.write_text("contexts: {a: {type: nonsense}}\n")
    for _each in range(2):
        with pytest.raises(UserError, match=r"contexts.yaml:1"):
            contexts.read(file)
    file.write_text("contexts: {a: {type: local, time: 2h}}\n")
    for _each in range(2):
        assert contexts.read(file).contexts["a"].time == "2h"
        assert contexts.key_lines(file, "a")["time"] == 1


def test_no_place_to_remember(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("YURT_DATA_HOME", "/proc/nowhere")
    assert remembered("kind", "text", int, lambda: 3) == 3


def test_two_threads_at_once(tmp_path: Path) -> None:
    """A type that msgspec meets for the first time in two threads at once crashed it, one call in six."""
    (tmp_path / "contexts.yaml").write_text("contexts: {a: {type: local}}\n")
    script = (
        "import threading; from yurt.config import contexts; barrier = threading.Barrier(2)\n"
        "def work(): barrier.wait(); contexts.named('a')\n"
        "both = [threading.Thread(target=work) for _ in range(2)]\n"
        "for each in both: each.start()\n"
        "for each in both: each.join()\n"
    )
    environment = {**os.environ, "YURT_CONFIG_HOME": str(tmp_path)}
    for _each in range(12):
        assert subprocess.run([sys.executable, "-c", script], env=environment, check=False).returncode == 0
