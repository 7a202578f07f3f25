"""`python -m tests.campaign`: submits hundreds of runs under faults on a separate lab. Exits with 1 on a violation."""

from __future__ import annotations

import sys

from tests.campaign.campaign import Campaign, Outcome, draw, writer
from tests.campaign.driver import Stage, arguments, drive
from tests.campaign.faults import DESCRIPTIONS, FAULTS
from tests.campaign.judge import Count, count, killed

COLUMNS = ("runs", "submissions", "refused", "once", "twice", "never", "cancelled", "killed", "restarted", "stranded")


def main() -> int:
    asked = arguments("", __doc__, runs=300, faults=list(FAULTS), timeout=200)
    episodes = draw(asked.seed, asked.runs, asked.only)

    def play(stage: Stage) -> bool:
        with (stage.work / "log").open("w") as log:
            outcome = Campaign(stage.lab, stage.work, stage.runtime, writer(log)).run(episodes, patience=asked.timeout)
        show(outcome)
        return not outcome.violations

    return drive("", asked, f"{len(episodes)} episodes", play)


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
