"""Backups of a workspace next to tar and lz4: 20,000 files of 8 KB and 5 of 100 MB, measured in turns on one disk."""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from random import Random

from benchmarks.figures import Figure, table
from yurt.node.backup import Workspace, restore

ROUNDS = 3
SMALL, SMALL_SIZE = 20_000, 8 * 1024
LARGE, LARGE_SIZE = 5, 100_000_000
RUN = 64
"""One run of equal bytes of this length in each piece lets lz4 shrink the data by about a tenth."""


def data(dice: Random, size: int) -> bytes:
    """Return bytes that lz4 shrinks by about a tenth."""
    noise = dice.randbytes(size // 9 * 8 + 4096)
    pieces = [noise[start : start + 8 * RUN] + bytes(RUN) for start in range(0, size // 9 * 8, 8 * RUN)]
    return (b"".join(pieces) + noise)[:size]


def create(folder: Path) -> None:
    dice = Random(19)
    for number in range(SMALL):
        path = folder / f"d{number % 200}" / f"f{number}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data(dice, SMALL_SIZE))
    for number in range(LARGE):
        (folder / f"large{number}").write_bytes(data(dice, LARGE_SIZE))


class Clock:
    """Adds up the time of each phase that a save reports."""

    def __init__(self) -> None:
        self.verify = 0.0
        self._began = 0.0

    def __call__(self, phase: str, done: int, total: int) -> None:
        if phase == "verify" and done == 0:
            self._began = time.perf_counter()
        if phase == "verify" and done == total:
            self.verify += time.perf_counter() - self._began


def seconds(action: Callable[[], object]) -> float:
    began = time.perf_counter()
    action()
    return time.perf_counter() - began


def shell(command: str, folder: Path) -> Callable[[], object]:
    return lambda: subprocess.run(["bash", "-o", "pipefail", "-c", command], cwd=folder, check=True)


def main() -> int:
    if shutil.which("lz4") is None:
        print("backup: SKIPPED: lz4 is not installed")
        return 0
    times: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory(prefix="yurt-bench-") as home:
        top = Path(home)
        create(top / "work")
        os.sync()
        files = max(one_round(top, number, times) for number in range(ROUNDS))
    ratio = {name: statistics.median(ratios(name, times)) for name in times}
    for name, values in times.items():
        print(f"{name:28}" + "".join(f"{value:8.2f} s" for value in values))
    return table(
        "backup: 20,000 files of 8 KB and 5 of 100 MB",
        [
            Figure("full backup, written, per tar | lz4", ratio["write"], 1.15),
            Figure("its read-back verification, per tar | lz4", ratio["verify"], 1.0),
            Figure("after changing 1 % of the files, per tar | lz4", ratio["one percent"], 0.1),
            Figure("restore, per lz4 -d | tar x", ratio["restore"], 1.5),
            Figure("files on the shared disk per backup", files, 9),
        ],
        "ratio",
    )


def ratios(name: str, times: dict[str, list[float]]) -> list[float]:
    """Return a figure of each round relative to the plain command of the same round."""
    plain = times["tar x" if name == "restore" else "tar | lz4"]
    return [value / other for value, other in zip(times[name], plain, strict=True)]


def one_round(top: Path, number: int, times: dict[str, list[float]]) -> int:
    """Measure everything once; return the number of files of one backup."""

    def measured(name: str, value: float) -> None:
        times.setdefault(name, []).append(value)
        os.sync()

    work, backups = top / "work", top / f"backups{number}"
    clock = Clock()
    workspace = Workspace(str(work), str(backups), str(top / f"state{number}"), on_progress=clock)

    def plain() -> None:
        measured("tar | lz4", seconds(shell("tar cf - work | lz4 -q -1 > plain.tar.lz4", top)))

    def full() -> None:
        total = seconds(lambda: workspace.save("full"))
        measured("write", total - clock.verify)
        measured("verify", clock.verify)

    for action in (plain, full) if number % 2 else (full, plain):
        action()
    files = len(list(backups.iterdir()))
    dice = Random(number)
    for each in dice.sample(range(SMALL), SMALL // 100):
        (work / f"d{each % 200}" / f"f{each}").write_bytes(data(dice, SMALL_SIZE))
    os.sync()
    measured("one percent", seconds(lambda: workspace.save("changes")))
    files = max(files, len(list(backups.iterdir())) - files)

    def extract() -> None:
        (top / "plain").mkdir()
        measured("tar x", seconds(shell("lz4 -q -d -c plain.tar.lz4 | tar xf - -C plain", top)))
        shutil.rmtree(top / "plain")

    def back() -> None:
        target, state = str(top / "restored"), str(top / "restored-state")
        measured("restore", seconds(lambda: restore(str(backups), 1, target, state)))
        shutil.rmtree(target)

    for action in (extract, back) if number % 2 else (back, extract):
        action()
    shutil.rmtree(backups)
    return files


if __name__ == "__main__":
    sys.exit(main())
