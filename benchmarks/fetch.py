"""How long `yurt fetch` and `yurt data get` take, next to rsync over the same ssh connection.

One file of 100 MB, 5,000 files, and a second fetch that finds nothing new. Both copy to new folders in memory, in
turns: a disk that other programs use would hide the difference.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.figures import Figure, table
from benchmarks.side_by_side import YURT, Bench, alpha, median

ROUNDS = 7

MAKE = """\
import os, pathlib, random, sys
chance = random.Random(5)
outputs = pathlib.Path(os.environ["YURT_OUTPUTS"])
if sys.argv[1] == "one":
    (outputs / "large.bin").write_bytes(chance.randbytes(100_000_000))
for number in range(5_000 if sys.argv[1] == "many" else 0):
    file = outputs / f"d{number % 50}" / f"f{number}"
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(chance.randbytes(4_096))
"""
"""Writes the results of a run."""


def finished_run(bench: Bench, kind: str) -> tuple[str, str]:
    """Return the id of a run with results, and its outputs on alpha."""
    source = bench.home / "project"
    source.mkdir(exist_ok=True)
    (source / "make.py").write_text(MAKE)
    bench.call([YURT, "--context", "alpha", "run", "--time", "5m", "--wait", "python3", "make.py", kind], folder=source)
    shown = json.loads(bench.call([YURT, "show", "-", "--json"], folder=source))["data"]["run"]
    return shown["id"], f"{shown['folder']}/outputs"


def measure(bench: Bench, run: str, outputs: str, memory: Path) -> dict[str, tuple[float, float]]:
    """Return the median seconds of yurt and of rsync, for new files and for nothing new."""
    (socket,) = (each for each in (bench.home / "r").rglob("*") if each.is_socket())
    shell = " ".join([*bench.ssh, "-S", str(socket)])
    ours = [YURT, "fetch", run, "--to", str(memory / "yurt")]
    theirs = ["rsync", "-rlpt", "-e", shell, f"alpha:{outputs}/", f"{memory / 'rsync'}/"]
    taken: dict[str, list[tuple[float, float]]] = {"new": [], "nothing new": []}
    for number in range(ROUNDS + 1):
        for each in memory.iterdir():
            shutil.rmtree(each)
        for found in taken.values():
            found.append(in_turns(bench, ours, theirs, ours_first=number % 2 == 0))
        bench.call(["diff", "-r", str(memory / "yurt"), str(memory / "rsync")])
    return {
        name: (median([one for one, _ in found[1:]]), median([other for _, other in found[1:]]))
        for name, found in taken.items()
    }


def in_turns(bench: Bench, ours: Sequence[str], theirs: Sequence[str], *, ours_first: bool) -> tuple[float, float]:
    """Return the seconds of two commands, one after the other."""
    if ours_first:
        return bench.seconds(ours), bench.seconds(theirs)
    other = bench.seconds(theirs)
    return bench.seconds(ours), other


def main() -> int:
    if os.geteuid() != 0 or not Path("/proc/self/stat").exists():
        print("fetch: SKIPPED: the lab needs root")
        return 0
    figures = []
    with alpha() as bench, tempfile.TemporaryDirectory(prefix="yb-", dir="/dev/shm") as memory:
        for name, kind in (("100 MB", "one"), ("5,000 files", "many")):
            found = measure(bench, *finished_run(bench, kind), Path(memory))
            for what, (ours, theirs) in found.items():
                print(f"fetch: {name}, {what}: {ours:.2f} s, by rsync {theirs:.2f} s", flush=True)
            ours, theirs = found["new"]
            figures.append(Figure(f"fetch of {name}, relative to rsync", ours / theirs, 1.2))
            if kind == "one":
                ours, theirs = found["nothing new"]
                figures.append(Figure("fetch of nothing new, relative to rsync", ours / theirs, 2.5))
    return table("fetch", figures)


if __name__ == "__main__":
    sys.exit(main())
