"""How long `yurt data put` takes, next to rsync over the same ssh connection: one file of 100 MB, and 5,000 files.

Both copy to new folders of alpha, in turns.
"""

from __future__ import annotations

import os
import random
import sys
from pathlib import Path

from benchmarks.figures import Figure, table
from benchmarks.side_by_side import YURT, Bench, alpha, median

ROUNDS = 5
LARGE = 100_000_000
FILES, SMALL = 5_000, 4_096


def sources(folder: Path) -> dict[str, Path]:
    """Make the files to copy."""
    chance = random.Random(5)
    one = folder / "one"
    one.mkdir()
    (one / "large.bin").write_bytes(chance.randbytes(LARGE))
    many = folder / "many"
    for number in range(FILES):
        file = many / f"d{number % 50}" / f"f{number}"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(chance.randbytes(SMALL))
    return {"100 MB": one, "5,000 files": many}


def measure(bench: Bench, source: Path) -> tuple[float, float]:
    """Return the median seconds of a put of new files, with yurt and with rsync."""
    (socket,) = (each for each in (bench.home / "r").rglob("*") if each.is_socket())
    shell = " ".join([*bench.ssh, "-S", str(socket)])
    ours, theirs = [], []
    for number in range(ROUNDS + 1):
        base = f"/lustre/scratch/alice/bench-{source.name}-{number}"
        place = f"alpha:{base}/yurt"
        bench.call([*bench.ssh, "-S", str(socket), "alpha", f"mkdir -p {base}"])
        one = bench.seconds([YURT, "data", "put", str(source), place])
        other = bench.seconds(["rsync", "-rlpt", "-e", shell, f"{source}/", f"alpha:{base}/rsync/"])
        bench.call([*bench.ssh, "-S", str(socket), "alpha", f"diff -r {base}/yurt {base}/rsync && rm -r {base}"])
        if number:
            ours.append(one)
            theirs.append(other)
    return median(ours), median(theirs)


def main() -> int:
    if os.geteuid() != 0 or not Path("/proc/self/stat").exists():
        print("data: SKIPPED: the lab needs root")
        return 0
    figures = []
    with alpha() as bench:
        for name, source in sources(bench.home).items():
            ours, theirs = measure(bench, source)
            print(f"data: put of {name}: {ours:.2f} s, by rsync {theirs:.2f} s", flush=True)
            figures.append(Figure(f"put of {name}, relative to rsync", ours / theirs, 1.2))
    return table("data put", figures)


if __name__ == "__main__":
    sys.exit(main())
