"""`python -m tests.campaign`: submits hundreds of runs under faults on a separate lab. Exits with 1 on a violation."""

from __future__ import annotations

import argparse
import os
import random
import shutil
import sys
import tempfile
import time
from pathlib import Path

from tests.campaign.arguments import Asked
from tests.campaign.campaign import Campaign, Outcome, draw, writer
from tests.campaign.faults import DESCRIPTIONS, FAULTS
from tests.campaign.judge import Count, count, killed

COLUMNS = ("runs", "submissions", "refused", "once", "twice", "never", "cancelled", "killed", "restarted", "stranded")


def main() -> int:
    asked = _arguments()
    seed = asked.seed if asked.seed is not None else random.SystemRandom().randrange(10**6)
    home = Path(asked.home or tempfile.mkdtemp(prefix="yc", dir="/tmp"))
    home.mkdir(exist_ok=True)
    work = home / f"campaign-{time.strftime('%m%d-%H%M%S')}"
    runtime = Path(tempfile.mkdtemp(prefix="yr", dir="/tmp"))
    os.environ |= {"YURT_CONFIG_HOME": str(home / "config"), "YURT_DATA_HOME": str(home / "data")}
    work.mkdir()
    from yurt.lab import Lab

    episodes = draw(seed, asked.runs, asked.only)
    print(f"seed {seed}: {len(episodes)} episodes; log: {work / 'log'}", flush=True)
    began = time.monotonic()
    lab = Lab()
    lab.up()
    try:
        with (work / "log").open("w") as log:
            outcome = Campaign(lab, work, runtime, writer(log)).run(episodes, patience=asked.timeout)
    finally:
        if not asked.home:
            lab.down(wipe=True)
        shutil.rmtree(runtime, ignore_errors=True)
    show(outcome)
    print(f"\n{time.monotonic() - began:.0f} s. To replay: make campaign SEED={seed} RUNS={asked.runs}")
    print("Add ONLY=FAULT for one kind of fault.")
    if outcome.violations:
        return 1
    if not asked.home:
        shutil.rmtree(home, ignore_errors=True)
    return 0


def _arguments() -> Asked:
    parser = argparse.ArgumentParser(prog="python -m tests.campaign", description=__doc__)
    parser.add_argument("--seed", type=int, help="random seed (default: a new one, which is printed)")
    parser.add_argument("--runs", type=int, default=300, help="approximate number of runs (default: 300)")
    parser.add_argument(
        "--only", action="append", choices=list(FAULTS), default=[], help="inject only this fault; can be repeated"
    )
    parser.add_argument("--home", help="store the lab in this folder and leave it running")
    parser.add_argument(
        "--timeout", type=float, default=200, help="seconds to wait for the last runs to finish (default: 200)"
    )
    return parser.parse_args(namespace=Asked())


def show(outcome: Outcome) -> None:
    """Print the table by fault, and all violations."""
    table = count(outcome.cases)
    total = Count()
    print(f"{'fault':<36}" + "".join(f"{name:>12}" for name in COLUMNS))
    for name in FAULTS:
        if name in table:
            _row(f"{name}: {DESCRIPTIONS[name]}"[:36], table[name])
            for column in COLUMNS:
                setattr(total, column, getattr(total, column) + getattr(table[name], column))
    _row("all", total)
    print("refused: jobs that exited at the gate. cancelled, killed: never started because of the user or Slurm.")
    print("restarted: runs in 'once' that were started again, as allowed, after the first start had finished.")
    for case in outcome.cases:
        if killed(case):
            status = case.statuses[0]
            print(f"killed by Slurm: {case.label} {case.run}, yurt's state: {status.state} ({status.reason})")
    if outcome.missed:
        print(f"{len(outcome.missed)} faults came too late to have an effect")
    print("\n".join(["", *outcome.violations, f"{len(outcome.violations)} violations"]))


def _row(name: str, row: Count) -> None:
    print(f"{name:<36}" + "".join(f"{getattr(row, column):>12}" for column in COLUMNS))


if __name__ == "__main__":
    sys.exit(main())
