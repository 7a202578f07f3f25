"""`python -m tests.campaign.races`: submits races under random faults. Exits with 1 on a violation.

In each round several clients submit a race each, with a fault of its own, while a fault hits a site or a link. The
user's code appends lines to a ledger on its site. It is a violation if an item of a race starts in two places or twice
at once, without a restart policy twice at all, or in more places than its retries allow; if the index shows another
winner than the ledgers, or none; if a race is not over at the end, or did not complete without a reason; and if jobs,
keys or folders are left on a site.
"""

from __future__ import annotations

import sys
import threading
import time
import traceback
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random

import msgspec

from tests.campaign.campaign import writer
from tests.campaign.driver import Stage, arguments, drive
from tests.campaign.race_faults import FAULTS, ROUNDS, Draw, Spec
from tests.campaign.race_judge import Copy, Race, judge, strays
from tests.campaign.race_site import Places, Racer, race_of
from yurt.lab import Lab

LANES = 6
"""Races of a round, each with a client of its own."""
PATIENCE = 30.0
"""Seconds for the races of a round; what is left may end later."""
SWEEP = 50


class Round(msgspec.Struct, frozen=True):
    """Races that are submitted at the same time, and a fault that hits them all."""

    fault: str
    draw: Draw
    races: list[Spec]


class Outcome(msgspec.Struct, frozen=True):
    """Result of a campaign."""

    races: list[Race]
    ledger: list[Copy]
    wrong: list[str]
    wanted: int
    """How many races were to be submitted; one may be refused under a fault, and one may be retried."""


def draw(seed: int, runs: int, only: Sequence[str] = ()) -> list[Round]:
    """Return the rounds of a seed. `only` selects faults of races and of rounds."""
    own = {name: weight for name, (weight, _) in FAULTS.items() if name in only or not set(only) & FAULTS.keys()}
    around = {name: weight for name, (weight, _) in ROUNDS.items() if name in only or not set(only) & ROUNDS.keys()}
    rounds: list[Round] = []
    for first in range(0, runs, LANES):
        dice = Random(f"{seed}/round/{first}")
        drawn: Draw = {
            "when": dice.choice([0.0, dice.uniform(0.5, 7), dice.uniform(4, 12)]),
            "length": dice.uniform(2, 12),
        }
        drawn |= {"site": dice.choice(["alpha", "beta"]), "kill": dice.random() < 0.5, "slow": dice.random() < 0.3}
        drawn |= {"direction": dice.choice(["up", "down"]), "ending": dice.choice(["reset", "reset", "stall"])}
        drawn |= {"fraction": dice.random()}
        fault = dice.choices(list(around), list(around.values()))[0]
        races = [one_race(seed, number, own) for number in range(first, min(first + LANES, runs))]
        rounds.append(Round(fault, drawn, races))
    return rounds


def one_race(seed: int, number: int, weights: dict[str, int]) -> Spec:
    dice = Random(f"{seed}/{number}")
    fault = dice.choices(list(weights), list(weights.values()))[0]
    contexts = dice.choice([["alpha", "beta"], ["beta", "alpha"]])
    mode = dice.choice(["arbiter", "arbiter", "grant", ""])
    sweep = dice.random() < 1 / 12 and fault not in ("requeue", "scancel", "preempt")
    if dice.random() < 0.15 and fault not in ("held", "requeue", "scancel", "preempt"):
        contexts = [*contexts, "local"]
    if fault == "preempt":
        contexts = ["alpha:partition=scavenge" if each == "alpha" else each for each in contexts]
    drawn: Draw = {"pause": dice.choice([0.0, dice.uniform(1, 12)]), "seconds": dice.uniform(0.2, 6)}
    drawn |= {"fraction": dice.random(), "coin": dice.random() < 0.5}
    again = fault == "requeue" or dice.random() < 0.2
    rest = dice.uniform(6, 9) if fault in ("requeue", "scancel", "preempt") else dice.choice([0.2, 1.0, 4.0])
    items = SWEEP if sweep else 0
    retries = not again and not sweep and dice.random() < 0.5
    pause = 0.2 if sweep else rest
    return Spec(f"{fault}-{number}", tuple(contexts), mode, fault, drawn, again, retries, items, pause)


class Campaign:
    """Performs rounds on a running lab."""

    def __init__(self, places: Places) -> None:
        self.places = places
        self.excused: dict[str, str] = {}
        """By label: why a race need not complete."""
        self.wrong: list[str] = []

    def round(self, one: Round) -> None:
        places = self.places
        places.log(f"round {one.fault}: {one.draw}")
        around = threading.Thread(target=self._around, args=(one,))
        around.start()
        with ThreadPoolExecutor(LANES) as pool:
            list(pool.map(self._race, places.clients, one.races))
            if one.fault == "node":
                self.excused |= {
                    spec.label: "its node failed" for spec in one.races if not (spec.requeue or spec.retries)
                }
            around.join()
            places.mend()
            list(pool.map(lambda client: tend(client, PATIENCE), places.clients))

    def _around(self, one: Round) -> None:
        try:
            ROUNDS[one.fault][1](self.places, one.draw)
        except Exception:
            self._failed(one.fault)

    def _race(self, client: Racer, spec: Spec) -> None:
        self.places.log(f"{client.name} {spec}")
        try:
            self.excused[spec.label] = FAULTS[spec.fault][1](self.places, client, spec)
        except Exception:
            self._failed(spec.label)

    def _failed(self, label: str) -> None:
        self.places.log(traceback.format_exc())
        self.wrong.append(f"{label}: the campaign itself failed, see the log")

    def outcome(self, wanted: int, patience: float) -> Outcome:
        """Wait until all races are over, and judge them."""
        places = self.places
        with ThreadPoolExecutor(LANES) as pool:
            list(pool.map(lambda client: tend(client, patience), places.clients))
        ledger = places.copies()
        races = [
            race_of(entry, candidates, items, excused=self.excused.get(entry.run.name, ""))
            for client in places.clients
            for entry, candidates, items in client.races()
        ]
        wrong = [*self.wrong, *(text for race in races for text in judge(race, ledger)), *strays(races, ledger)]
        wrong += [f"{race}: something is left to do" for client in places.clients for race in client.open()]
        wrong += places.left()
        wrong += dict.fromkeys(text for client in places.clients for text in client.wrong)
        for text in wrong:
            places.log(f"VIOLATION {text}")
        return Outcome(races, ledger, wrong, wanted)


def tend(client: Racer, seconds: float) -> None:
    """Run the agent until nothing is left to do for the races of a client."""
    deadline = time.monotonic() + seconds
    while client.open() and time.monotonic() < deadline:
        client.once()
        time.sleep(0.5)


def campaign(lab: Lab, work: Path, runtime: Path, rounds: Sequence[Round], patience: float) -> Outcome:
    """Perform all rounds."""
    with (work / "log").open("w") as file:
        places = Places(lab, work, runtime, writer(file), max(len(each.races) for each in rounds))
        played = Campaign(places)
        try:
            places.prepare()
            for one in rounds:
                played.round(one)
            return played.outcome(sum(len(each.races) for each in rounds), patience)
        finally:
            places.close()


def show(outcome: Outcome, rounds: Sequence[Round]) -> None:
    around = {spec.label: one.fault for one in rounds for spec in one.races}
    starts = Counter(each.candidate for each in outcome.ledger)
    print(f"{'fault':<12}{'wanted':>8}{'races':>8}{'items':>8}{'starts':>8}{'completed':>11}")
    for fault in (*FAULTS, *ROUNDS):
        labels = {label for label, other in around.items() if fault in (other, label.partition("-")[0])}
        mine = [race for race in outcome.races if race.label in labels]
        items = [item for race in mine for item in race.items]
        begun = sum(starts[each] for race in mine for each in race.candidates)
        done = sum(item.state == "completed" for item in items)
        print(f"{fault:<12}{len(labels):>8}{len(mine):>8}{len(items):>8}{begun:>8}{done:>11}")
    won = Counter(each.context for each in outcome.ledger)
    print(f"{outcome.wanted} races wanted, {len(outcome.races)} saved; starts: {dict(won)}")
    print("\n".join([*outcome.wrong, f"{len(outcome.wrong)} violations"]))


def main() -> int:
    asked = arguments("races", __doc__, runs=200, faults=[*FAULTS, *ROUNDS], timeout=300)
    rounds = draw(asked.seed, asked.runs, asked.only)

    def play(stage: Stage) -> bool:
        outcome = campaign(stage.lab, stage.work, stage.runtime, rounds, asked.timeout)
        show(outcome, rounds)
        return not outcome.wrong

    return drive("races", asked, f"{asked.runs} races in {len(rounds)} rounds", play)


if __name__ == "__main__":
    sys.exit(main())
