"""`python -m tests.campaign.where`: compares what `yurt where` shows with what happens. Exits with 1 if it is wrong.

In each case jobs with random sizes, limits and durations fill the queue of one node. Then `yurt where` is asked when a
request starts there, the request is submitted, and sometimes jobs of higher priority come after it. The true start must
be in the range that was shown in at least 80 of 100 cases. Cases on different nodes of alpha and beta run in parallel.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from random import Random
from typing import NamedTuple

from tests.campaign.client import Client
from tests.campaign.driver import Stage, arguments, drive
from yurt.lab import Lab
from yurt.store import Store
from yurt.testing.waiting import eventually
from yurt.where.calibration import Pair
from yurt.where.history import history

NODES = (("alpha", "n1"), ("alpha", "n2"), ("alpha", "n3"), ("beta", "n1"), ("beta", "n2"))
"""The queues that are filled in parallel."""

COUNT = 'echo "left: $(squeue -h -u alice | wc -l)"'

SHARE = 0.8
"""The least share of starts that must be in the range."""


class Job(NamedTuple):
    """A job of another user."""

    cpus: int
    minutes: int
    """Its time limit."""
    seconds: float
    """How long it really runs."""
    partition: str = "main"


class Case(NamedTuple):
    """A queue of one node, the request that follows, and the jobs that come after it."""

    context: str
    node: str
    before: list[Job]
    cpus: int
    minutes: int
    after: list[Job]


def draw(seed: int, number: int) -> Case:
    """Return a case; the same for the same seed and number."""
    dice = Random(f"{seed}/{number}")

    def job(partition: str = "main") -> Job:
        minutes = dice.randint(1, 2 if partition == "short" else 3)
        return Job(dice.choice([2, 4, 8]), minutes, round(dice.uniform(2, 40), 1), partition)

    context, node = NODES[number % len(NODES)]
    later = [job("short") for _each in range(dice.choice([0, 0, 1, 2]))]
    return Case(
        context, node, [job() for _each in range(dice.randint(0, 6))], dice.choice([2, 4, 8]), dice.randint(1, 3), later
    )


class Outcome(NamedTuple):
    """Result of a campaign: expected and real waits, and cases without an estimate."""

    pairs: list[Pair]
    unknown: list[str]

    @property
    def within(self) -> int:
        return sum(pair.within for pair in self.pairs)

    @property
    def right(self) -> bool:
        return not self.unknown and self.within >= SHARE * len(self.pairs)


class Player:
    """A user of both clusters, and the other users' jobs."""

    def __init__(self, lab: Lab, work: Path, runtime: Path, log: Callable[[str], None]) -> None:
        self.lab = lab
        project = work / "project"
        project.mkdir(parents=True)
        self.client = Client("where", data=work / "where", runtime=runtime / "where", project=project, log=log)

    def ssh(self, context: str, text: str) -> str:
        config = str(self.lab.instance.client / "ssh_config")
        words = ["ssh", "-F", config, context, f"cd $SCRATCH && {text}"]
        return subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, check=True, text=True).stdout

    def fill(self, context: str, jobs: Sequence[tuple[str, Job]]) -> None:
        """Submit jobs to nodes of a cluster."""
        lines = [
            f"sbatch -Q -p {job.partition} -w {node} -c {job.cpus} -t {job.minutes} -o /dev/null"
            f" --wrap 'sleep {job.seconds}'"
            for node, job in jobs
        ]
        if lines:
            self.ssh(context, " && ".join(lines))

    def empty(self) -> None:
        """Cancel what is left, and wait until nothing runs."""
        for context in {context for context, _node in NODES}:
            self.ssh(context, "scancel -u alice")
        for context in {context for context, _node in NODES}:
            eventually(partial(self._is_empty, context))

    def _is_empty(self, context: str) -> bool:
        return "left: 0" in self.ssh(context, COUNT)

    def play(self, cases: Sequence[Case]) -> list[str]:
        """Fill the queues, ask, submit, and wait until the requests have started; return cases without an estimate."""
        for context in {case.context for case in cases}:
            self.fill(context, [(case.node, job) for case in cases if case.context == context for job in case.before])
        unknown, runs = [], []
        for case in cases:
            what = ["--context", case.context, "--partition", "main", "--nodelist", case.node]
            what += ["--cpus", str(case.cpus), "--time", f"{case.minutes}m", "--json"]
            shown = json.loads(self.client.call("where", *what))["data"]["starts"]
            if [row["seconds"] is not None for row in shown] != [True]:
                unknown.append(f"{case}: {shown}")
            runs.append(json.loads(self.client.call("run", *what, "--no-snapshot", "sleep", "1"))["data"]["run"]["id"])
            self.fill(case.context, [(case.node, job) for job in case.after])
        eventually(lambda: self._started(runs), seconds=400)
        self.empty()
        return unknown

    def _started(self, runs: Sequence[str]) -> bool:
        rows = json.loads(self.client.call("ps", "--json", "--limit", str(len(runs))))["data"]
        found = {row["id"]: row["started"] for row in rows}
        return all(found.get(run) for run in runs)


def campaign(stage: Stage, seed: int, cases: int, log: Callable[[str], None]) -> Outcome:
    """Play all cases, as many at a time as there are nodes."""
    player, unknown = Player(stage.lab, stage.work, stage.runtime, log), list[str]()
    drawn = [draw(seed, number) for number in range(cases)]
    player.empty()
    for first in range(0, cases, len(NODES)):
        unknown += player.play(drawn[first : first + len(NODES)])
        found = outcome(player.client.data, unknown)
        log(f"after {len(found.pairs)} cases: {found.within} in the range")
    found = outcome(player.client.data, unknown)
    lacking = cases - len(found.pairs)
    return found if not lacking else Outcome(found.pairs, [*unknown, f"{lacking} runs have no estimate"])


def outcome(data: Path, unknown: list[str]) -> Outcome:
    with Store(str(data / "yurt.db")) as store:
        past = [history(store, context) for context in ("alpha", "beta")]
    return Outcome([pair for each in past for pairs in each.pairs.values() for pair in pairs], unknown)


def main() -> int:
    asked = arguments("where", __doc__, runs=100, faults=())

    def play(stage: Stage) -> bool:
        with (stage.work / "log").open("a", buffering=1) as file:

            def log(text: str) -> None:
                print(text, file=file)
                if text.startswith("after"):
                    print(text, flush=True)

            found = campaign(stage, asked.seed, asked.runs, log)
        for pair in found.pairs:
            mark = "" if pair.within else "  not in the range"
            print(
                f"expected {pair.expected:4.0f} s, {pair.low:4.0f} to {pair.high:4.0f} s, real {pair.real:4.0f} s{mark}"
            )
        early = sum(pair.real < pair.low for pair in found.pairs)
        print("\n".join(found.unknown))
        print(f"{found.within} of {len(found.pairs)} starts in the range; {early} of the others were earlier")
        return found.right

    return drive("where", asked, f"{asked.runs} queues", play)


if __name__ == "__main__":
    sys.exit(main())
