"""Measures `yurt cluster` of three contexts against the slowest of them alone, in alternation."""

from __future__ import annotations

import sys

from benchmarks.figures import Figure, table
from benchmarks.side_by_side import YURT, alpha, median

ROUNDS = 15
NAMES = ("alpha", "beta", "local")


def main() -> int:
    with alpha() as bench:
        bench.call([YURT, "lab", "up", "beta"])
        bench.call([YURT, "cluster", *NAMES])
        times: dict[str, list[float]] = {name: [] for name in (*NAMES, "all")}
        for _round in range(ROUNDS):
            for name in NAMES:
                times[name].append(bench.seconds([YURT, "cluster", name]))
            times["all"].append(bench.seconds([YURT, "cluster", *NAMES]))
        size = len(bench.call([YURT, "cluster", "--json", *NAMES]))
        bench.call([YURT, "login", "--close", "beta"])
    slowest = max(NAMES, key=lambda name: median(times[name]))
    ratio = median([both / one for both, one in zip(times["all"], times[slowest], strict=True)])
    rows = [Figure(f"cluster {name}, seconds", median(times[name])) for name in (*NAMES, "all")]
    rows.append(Figure("all / the slowest alone", ratio, 1.3))
    rows.append(Figure("JSON of all, bytes", size))
    return table("yurt cluster", rows)


if __name__ == "__main__":
    sys.exit(main())
