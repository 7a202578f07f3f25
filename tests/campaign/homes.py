"""`python -m tests.campaign.homes`: homes in sync under random edits and faults. Exits with 1 on a violation.

In each round the user changes files on three places, and a fault comes during the sync. Then syncs follow until one
ends well. It is a violation if a version is neither in place nor in a backup, if a file is no version of the user, if a
version of this round was overwritten, or if homes differ without a conflict. Conflicts are resolved at random.
"""

from __future__ import annotations

import sys
import time
import traceback
from collections.abc import Sequence
from pathlib import Path
from random import Random

import msgspec

from tests.campaign import home_judge as judge
from tests.campaign.campaign import writer
from tests.campaign.driver import Stage, arguments, drive
from tests.campaign.home_faults import FAULTS, MOMENTS, Draw
from tests.campaign.home_judge import State
from tests.campaign.home_site import Answer, HomeSite
from yurt.lab import Lab

ATTEMPTS = 4
"""Syncs without a fault until one has to end well."""
FILES = 35


class Episode(msgspec.Struct, frozen=True):
    """One round: the hub, the fault and its random parameters."""

    hub: str
    fault: str
    number: int
    draw: Draw

    @property
    def label(self) -> str:
        return f"{self.hub} {self.fault}-{self.number}"


class Case(msgspec.Struct, frozen=True):
    """What one round left."""

    fault: str
    seconds: float
    syncs: int
    """Syncs until one ended well, with the disturbed one."""
    conflicts: int
    resolved: int
    missed: bool
    """Whether the fault came too late to have an effect."""


class Outcome(msgspec.Struct, frozen=True):
    """Result of a campaign."""

    cases: list[Case]
    wrong: list[str]
    versions: int
    """How many versions the user made."""


def draw(seed: int, runs: int, only: Sequence[str] = ()) -> list[Episode]:
    """Return the rounds of a seed; every fifth one with alpha as the hub."""
    kinds = [fault for fault in FAULTS if not only or fault in only]
    Random(seed).shuffle(kinds)
    episodes = []
    for number in range(runs):
        dice = Random(f"{seed}/{number}")
        drawn: Draw = {"edits": dice.randint(1, 14), "moment": dice.choice(MOMENTS), "delay": dice.random() ** 2}
        drawn |= {"site": dice.choice(["alpha", "beta"]), "fraction": dice.random(), "slow": dice.random() < 0.3}
        drawn |= {"resolve": dice.choice(["", "", "--newer", "--both", "local", "alpha", "beta"])}
        drawn |= {"one": dice.random() < 0.4, "kill": dice.random() < 0.2}
        episodes.append(Episode("alpha" if number % 5 == 4 else "local", kinds[number % len(kinds)], number, drawn))
    return episodes


class Star:
    """A star of homes and its rounds."""

    def __init__(self, site: HomeSite) -> None:
        self.site = site
        self.cases: list[Case] = []
        self.wrong: list[str] = []

    def prepare(self) -> None:
        """Create some files on each place, and sync them for the first time."""
        self.site.editor.edit(FILES)
        self._check("first sync", self.site.state(), self._settle("first sync")[0])

    def round(self, episode: Episode) -> None:
        site, drawn = self.site, episode.draw
        began = time.monotonic()
        site.log(f"{episode.label}: {drawn}")
        site.editor.begin()
        site.editor.edit(drawn["edits"])
        before = site.state()
        hit = FAULTS[episode.fault](site, drawn)
        answer, syncs = self._settle(episode.label)
        self._check(episode.label, before, answer)
        found = _conflicts(answer)
        resolved = self._resolve(episode.label, drawn) if found and drawn["resolve"] else 0
        self.cases.append(
            Case(episode.fault, time.monotonic() - began, syncs + 1, len(found), resolved, missed=not hit)
        )

    def _settle(self, label: str) -> tuple[Answer, int]:
        """Sync without a fault until the exit code is 0 or 1, without files that failed."""
        for attempt in range(1, ATTEMPTS + 1):
            self.site.quiet()
            answer = self.site.sync()
            if answer.code in (0, 1) and not any(each.get("failed") for each in answer.data):
                return answer, attempt
        self.wrong.append(f"{label}: the homes do not recover: {answer.text[:600]}")
        return answer, ATTEMPTS

    def _check(self, label: str, before: State, answer: Answer) -> None:
        site = self.site
        after = site.state()
        wrong = judge.lost(before, after) + judge.unknown(after, site.editor)
        wrong += judge.overwritten(before, after, site.editor.fresh)
        if answer.code in (0, 1):
            wrong += judge.unequal(after, _conflicts(answer))
        if answer.code == 1 and not _conflicts(answer):
            wrong.append("exit code 1 without a conflict")
        self._note(label, wrong)

    def _resolve(self, label: str, drawn: Draw) -> int:
        """Resolve conflicts by a rule. The losing versions have to be in backups."""
        site, rule = self.site, drawn["resolve"]
        before = site.state()
        known = site.call("home", "conflicts").data["conflicts"]
        words = [rule, "--yes"] if rule.startswith("-") else ["--keep", rule, "--yes"]
        if not rule.startswith("-"):
            known = [each for each in known if rule in each["versions"]]
        if not known:
            return 0
        if drawn["one"]:
            known = known[:1]
            words += ["--", known[0]["path"]]
        process = site.start("home", "conflicts", *words)
        if drawn["kill"]:
            time.sleep(drawn["fraction"] * 2)
            process.kill()
        answer = site.end(process)
        after = site.state()
        self._note(f"{label}, {' '.join(words)}", judge.lost(before, after) + judge.unknown(after, site.editor))
        if answer.code == 0 and not drawn["one"]:
            # The resolved version may be in conflict with another place now.
            left = {each["path"]: each["versions"] for each in site.call("home", "conflicts").data["conflicts"]}
            still = [each["path"] for each in known if len(each["versions"].keys() & left.get(each["path"], ())) > 1]
            self._note(label, [f"{path!r} is still in conflict after {' '.join(words)}" for path in still])
        if answer.code != 0 and not drawn["kill"]:
            self._note(label, [f"{' '.join(words)} ended with exit code {answer.code}: {answer.text[-400:]}"])
        return len(known) if answer.code == 0 else 0

    def _note(self, label: str, wrong: Sequence[str]) -> None:
        for each in wrong:
            self.site.log(f"VIOLATION {label}: {each}")
        self.wrong += [f"{label}: {each}" for each in wrong]


def _conflicts(answer: Answer) -> list[str]:
    return sorted({each["path"] for pair in answer.data or () for each in pair.get("skipped", ())})


def campaign(lab: Lab, work: Path, runtime: Path, episodes: Sequence[Episode], seed: object = 0) -> Outcome:
    """Perform all rounds."""
    stars: dict[str, Star] = {}
    known: set[str] = set()
    lab.faults.link()
    with (work / "log").open("w") as file:
        log = writer(file)
        for hub in dict.fromkeys(each.hub for each in episodes):
            stars[hub] = Star(HomeSite(lab, hub, work, runtime, log, seed=seed, known=known))
            stars[hub].prepare()
        for episode in episodes:
            star = stars[episode.hub]
            try:
                star.round(episode)
            except Exception:
                log(traceback.format_exc())
                star.wrong.append(f"{episode.label}: the campaign itself failed, see the log")
            finally:
                star.site.mend()
        for star in stars.values():
            star.site.close()
    return Outcome(
        [case for star in stars.values() for case in star.cases],
        [text for star in stars.values() for text in (*star.wrong, *star.site.wrong)],
        len(known),
    )


def show(outcome: Outcome) -> None:
    print(f"{'fault':<10}{'rounds':>8}{'missed':>8}{'syncs':>8}{'conflicts':>11}{'resolved':>10}{'seconds':>9}")
    for fault in FAULTS:
        mine = [case for case in outcome.cases if case.fault == fault]
        if mine:
            missed, syncs = sum(case.missed for case in mine), sum(case.syncs for case in mine)
            conflicts, resolved = sum(case.conflicts for case in mine), sum(case.resolved for case in mine)
            seconds = sum(case.seconds for case in mine) / len(mine)
            print(f"{fault:<10}{len(mine):>8}{missed:>8}{syncs:>8}{conflicts:>11}{resolved:>10}{seconds:>9.1f}")
    print("missed: the sync ended before the fault")
    print(f"{outcome.versions} versions of files and links")
    print("\n".join([*outcome.wrong, f"{len(outcome.wrong)} violations"]))


def main() -> int:
    asked = arguments("homes", __doc__, runs=200, faults=list(FAULTS))
    episodes = draw(asked.seed, asked.runs, asked.only)

    def play(stage: Stage) -> bool:
        outcome = campaign(stage.lab, stage.work, stage.runtime, episodes, asked.seed)
        show(outcome)
        return not outcome.wrong

    return drive("homes", asked, f"{len(episodes)} rounds", play)


if __name__ == "__main__":
    sys.exit(main())
