"""Shared parts of the benchmarks over ssh: a separate lab, a project of 2,000 files, timing of commands."""

from __future__ import annotations

import contextlib
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

YURT = str(Path(sys.executable).parent / "yurt")


class Bench:
    """A lab with alpha running, and the environment of yurt commands that use it."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.environment = {
            **{name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"},
            "YURT_CONFIG_HOME": f"{home}/config",
            "YURT_DATA_HOME": f"{home}/data",
            "YURT_RUNTIME_DIR": f"{home}/r",
        }
        self.ssh: list[str] = []

    def seconds(
        self, argv: Sequence[str], *, folder: Path | None = None, more: Mapping[str, str] | None = None
    ) -> float:
        """Return the seconds that one command takes."""
        started = time.perf_counter()
        self.call(argv, folder=folder, more=more)
        return time.perf_counter() - started

    def call(self, argv: Sequence[str], *, folder: Path | None = None, more: Mapping[str, str] | None = None) -> str:
        done = subprocess.run(
            argv,
            cwd=folder or self.home,
            env={**self.environment, **(more or {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(f"{' '.join(argv)}: {done.stdout[-500:]} {done.stderr[-500:]}")
        return done.stdout


@contextlib.contextmanager
def alpha() -> Iterator[Bench]:
    """Start a lab with alpha, probe it, and stop the lab afterwards."""
    with tempfile.TemporaryDirectory(prefix="yb-") as folder:
        bench = Bench(Path(folder))
        bench.call([YURT, "lab", "up", "alpha"])
        try:
            config = bench.home / "data" / "lab" / "default" / "client" / "ssh_config"
            bench.ssh = ["ssh", "-F", str(config)]
            bench.call([YURT, "context", "probe", "alpha"])
            yield bench
        finally:
            subprocess.run([YURT, "login", "--close", "alpha"], env=bench.environment, capture_output=True, check=False)
            bench.call([YURT, "lab", "down", "--wipe"])


@contextlib.contextmanager
def linked() -> Iterator[Bench]:
    """Start a lab with two clusters that reach each other, whose contexts allow races by ssh."""
    with tempfile.TemporaryDirectory(prefix="yb-") as folder:
        bench = Bench(Path(folder))
        bench.call([YURT, "lab", "up"])
        try:
            bench.call([YURT, "lab", "fault", "link"])
            config = bench.home / "data" / "lab" / "default" / "client" / "ssh_config"
            bench.ssh = ["ssh", "-F", str(config)]
            file = bench.home / "config" / "contexts.yaml"
            text = file.read_text().replace("  alpha:\n", "  alpha:\n    race_address: alice@alpha\n")
            file.write_text(text.replace("  beta:\n", "  beta:\n    race_keys: true\n"))
            yield bench
        finally:
            for name in ("alpha", "beta"):
                subprocess.run(
                    [YURT, "login", "--close", name], env=bench.environment, capture_output=True, check=False
                )
            bench.call([YURT, "lab", "down", "--wipe"])


def project(folder: Path, files: int = 2000, size: int = 10_240) -> Path:
    """Create a git repository with `files` files, a quarter of them incompressible."""
    chance = random.Random(4)
    for number in range(files):
        target = folder / f"d{number % 40}" / f"f{number}.py"
        target.parent.mkdir(parents=True, exist_ok=True)
        line = f"value_{number} = {chance.random()}\n"
        target.write_bytes(
            chance.randbytes(size) if number % 4 == 0 else (line * (size // len(line) + 1)).encode()[:size]
        )
    git = ["git", "-c", "user.email=bench@example.com", "-c", "user.name=bench"]
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "bench"]):
        subprocess.run([*git, *words], cwd=folder, check=True, capture_output=True)
    return folder


def median(times: Sequence[float]) -> float:
    return statistics.median(times)
