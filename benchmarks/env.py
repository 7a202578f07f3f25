"""Builds an environment of 40 packages on alpha, compared with uv and pip typed there; and what a run with it costs."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path

from benchmarks.counts import ssh_executions
from benchmarks.figures import Figure, table
from benchmarks.side_by_side import YURT, Bench, alpha, median
from tests.wheels import tiny

TURNS, PACKAGES, MODULES = 5, 40, 50
SITE_ENVS = "/lustre/scratch/alice/yurt/envs"


def main() -> int:
    if os.geteuid() != 0:
        print("env: skipped; the lab needs root")
        return 0
    with alpha() as bench:
        project = declare(bench.home)
        bench.environment["PIP_FIND_LINKS"] = f"{bench.home}/wheels"
        wheels = [str(wheel) for wheel in sorted((bench.home / "wheels").iterdir())]
        bench.call([YURT, "lab", "index", *wheels])
        build = [YURT, "--context", "alpha", "env", "build"]
        bench.call(build, folder=project)
        (folder,) = on_alpha(bench, f"echo {SITE_ENVS}/*").split()
        uv = on_alpha(bench, f"ls {SITE_ENVS}/../tools/uv 2> /dev/null || command -v uv || true").strip()
        hand = {"pip": f"python3 -m venv by-hand && by-hand/bin/pip install -q -r {folder}/lock"}
        if uv:
            install = f"{uv} pip install -q --no-cache --python by-hand/bin/python --compile-bytecode -r {folder}/lock"
            hand["uv"] = f"{uv} venv -q by-hand && {install}"
        rows: dict[str, list[float]] = {name: [] for name in ("yurt", *hand)}
        for _turn in range(TURNS):
            on_alpha(bench, f"chmod -R u+w {SITE_ENVS}; rm -rf {SITE_ENVS}")
            rows["yurt"].append(bench.seconds(build, folder=project))
            for name, line in hand.items():
                command = [*bench.ssh, "alice@alpha", f"bash -lc {shlex.quote(line)}"]
                rows[name].append(bench.seconds(command))
                on_alpha(bench, "rm -rf by-hand")
        run = [YURT, "--context", "alpha", "run", "--time", "5m"]
        bench.call([*run, "train.py"], folder=project)
        with_env = ssh_executions(bench, [*run, "train.py"], project)
        without = ssh_executions(bench, [*run, "--env", "none", "train.py"], project)
    quickest = min(hand, key=lambda name: median(rows[name]))
    figures = [Figure(f"{name} by hand", median(rows[name]) / median(rows[quickest])) for name in hand]
    figures.append(Figure("yurt env build", median(rows["yurt"]) / median(rows[quickest]), 1.2))
    figures.append(Figure("ssh executions of a run more than without it", with_env - without, 0))
    return table(f"an environment of {PACKAGES} packages", figures, f"x {quickest}")


def declare(home: Path) -> Path:
    """Create wheels of 40 packages, and a project that needs them."""
    project = home / "project"
    project.mkdir()
    names = [f"bench-{number}" for number in range(PACKAGES)]
    code = "".join(f"def f{number}(x):\n    return [x + {number}, str(x)]\n\n\n" for number in range(20))
    for name in names:
        tiny(home / "wheels", name, modules=MODULES, code=code)
    (project / "requirements.txt").write_text("".join(f"{each}\n" for each in names))
    (project / "train.py").write_text("import bench_1\n")
    return project


def on_alpha(bench: Bench, line: str) -> str:
    return bench.call([*bench.ssh, "alice@alpha", line])


if __name__ == "__main__":
    sys.exit(main())
