"""What all campaigns share: the arguments, the seed, a lab of their own, and the line that replays them."""

from __future__ import annotations

import argparse
import os
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from yurt.lab import Lab


class Asked:
    """The arguments, with types: a misspelled one is an error of mypy, not of a campaign."""

    seed: int
    runs: int
    only: list[str]
    slurm: str
    home: str | None
    timeout: float


class Stage(NamedTuple):
    """Where a campaign runs."""

    lab: Lab
    work: Path
    """A new folder for its files and its log."""
    runtime: Path
    """A folder with a short path, for sockets."""


def arguments(name: str, about: str | None, *, runs: int, faults: Sequence[str], timeout: float = 0) -> Asked:
    """Read the command line of `python -m tests.campaign.NAME`. A new seed is drawn if the user gives none."""
    parser = argparse.ArgumentParser(prog=module(name), description=about)
    parser.add_argument("--seed", type=int, help="random seed (default: a new one, which is printed)")
    parser.add_argument("--runs", type=int, default=runs, help=f"how many, approximately (default: {runs})")
    parser.add_argument(
        "--only", action="append", choices=list(faults), default=[], help="inject only this fault; can be repeated"
    )
    parser.add_argument("--slurm", default="", help="version of Slurm on the lab (default: that of this machine)")
    parser.add_argument("--home", help="store the lab in this folder and leave it running")
    parser.add_argument(
        "--timeout", type=float, default=timeout, help=f"seconds for what is left at the end (default: {timeout:.0f})"
    )
    asked = parser.parse_args(namespace=Asked())
    if asked.seed is None:
        asked.seed = random.SystemRandom().randrange(10**6)
    return asked


def module(name: str) -> str:
    return f"python -m tests.campaign{f'.{name}' if name else ''}"


def drive(name: str, asked: Asked, about: str, play: Callable[[Stage], bool]) -> int:
    """Run a campaign on a lab of its own; return the exit code. `play` prints its outcome and says whether it is right.

    The files stay after a violation.
    """
    home = Path(asked.home or tempfile.mkdtemp(prefix="yc", dir="/tmp"))
    home.mkdir(exist_ok=True)
    work = home / f"{name or 'campaign'}-{time.strftime('%m%d-%H%M%S')}"
    work.mkdir()
    runtime = Path(tempfile.mkdtemp(prefix="yr", dir="/tmp"))
    os.environ |= {"YURT_CONFIG_HOME": str(home / "config"), "YURT_DATA_HOME": str(home / "data")}
    print(f"seed {asked.seed}: {about}; log: {work / 'log'}", flush=True)
    began = time.monotonic()
    lab = Lab()
    lab.up(slurm=asked.slurm)
    try:
        right = play(Stage(lab, work, runtime))
    finally:
        if not asked.home:
            lab.down(wipe=True)
        shutil.rmtree(runtime, ignore_errors=True)
    print_replay(name, asked, began)
    if right and not asked.home:
        shutil.rmtree(home, ignore_errors=True)
    return 0 if right else 1


def print_replay(name: str, asked: Asked, began: float) -> None:
    """Print how long a campaign took, and the command that repeats it."""
    only = "".join(f" --only '{fault}'" for fault in asked.only)
    sys.stdout.flush()
    slurm = f" --slurm {asked.slurm}" if asked.slurm else ""
    again = f"{module(name)} --seed {asked.seed} --runs {asked.runs}{only}{slurm}"
    print(f"{time.monotonic() - began:.0f} s. To replay: {again}")
