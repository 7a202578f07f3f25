"""The cache of parsed files: keyed by text, never outdated, never broken."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from yurt.config import contexts
from yurt.config.parse_cache import cached
from yurt.errors import UserError


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("YURT_DATA_HOME", str(tmp_path))
    return tmp_path


def test_parsed_once(home: Path) -> None:
    calls: list[str] = []

    def parse() -> dict[str, int]:
        calls.append("x")
        return {"a": len(calls)}

    assert cached("kind", "text", dict[str, int], parse) == {"a": 1}
    assert cached("kind", "text", dict[str, int], parse) == {"a": 1}
    assert cached("kind", "other", dict[str, int], parse) == {"a": 2}
    (home / "cache" / "kind.json").write_bytes(b"{broken")
    assert cached("kind", "other", dict[str, int], parse) == {"a": 3}
    assert (home / "cache" / "kind.json").stat().st_mode & 0o777 == 0o600


def test_faults_are_reported_every_time(tmp_path: Path) -> None:
    file = tmp_path / "contexts.yaml"
    file.write_text("contexts: [a]\n")
    for _each in range(2):
        with pytest.raises(UserError, match=r"contexts.yaml:1"):
            contexts.read(file)
    file.write_text("contexts: {a: {type: nonsense}, b: {type: local, tpu: 1}}\n")
    for _each in range(2):
        found = contexts.read(file)
        assert found.invalid == frozenset("a") and list(found.contexts) == ["b"] and found.unused == {"b": ("tpu",)}
    file.write_text("contexts: {a: {type: local, time: 2h}}\n")
    for _each in range(2):
        assert contexts.read(file).contexts["a"].time == "2h"
        assert contexts.key_lines(file, "a")["time"] == 1


def test_unwritable_cache_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("YURT_DATA_HOME", "/proc/nowhere")
    assert cached("kind", "text", int, lambda: 3) == 3


def test_two_threads(tmp_path: Path) -> None:
    """msgspec crashed in one call of six when two threads used a type for the first time concurrently."""
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
