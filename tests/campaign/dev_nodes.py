"""`python -m tests.campaign.dev_nodes`: dev nodes under random faults. Exits with 1 on a violation.

In each case the workspace is changed, and a fault comes during its backup, or during its restore on another node. Then
the dev node is started again. It is a violation if a listed version does not verify or does not restore bit for bit, if
the workspace is older than the last complete version, if a part of a restore is left, or if a foreign file is gone.
"""

from __future__ import annotations

import sys
import time
import traceback
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random

import msgspec

from tests.campaign.campaign import writer
from tests.campaign.dev_faults import (
    BACKUP_MOMENTS,
    ON_BACKUP,
    ON_RESTORE,
    RESTORE_MOMENTS,
    Draw,
    wait_for_backup,
    wait_for_restore,
)
from tests.campaign.dev_site import DevSite, names_in
from tests.campaign.driver import Stage, arguments, drive
from yurt.lab import Lab

MB = 1 << 20
KINDS = [*(f"backup-{name}" for name in ON_BACKUP), *(f"restore-{name}" for name in ON_RESTORE)]
KEPT = ("child", "full", "cut", "laptop")
"""Faults after which the backup succeeds when it is repeated."""


class Episode(msgspec.Struct, frozen=True):
    """One fault and its random parameters."""

    cluster: str
    kind: str
    number: int
    draw: Draw

    @property
    def label(self) -> str:
        return f"{self.kind}-{self.number}"


class Case(msgspec.Struct, frozen=True):
    """What one fault left."""

    kind: str
    seconds: float
    lost: int
    """Generations of the workspace since the last complete version that are not on the next node."""
    published: bool
    """Whether the interrupted backup became a version."""


class Outcome(msgspec.Struct, frozen=True):
    """Result of a campaign."""

    cases: list[Case]
    wrong: list[str]
    missed: list[str]
    """Cases whose fault came too late to have an effect."""


def draw(seed: int, runs: int, only: Sequence[str] = ()) -> list[Episode]:
    """Return the cases of a seed."""
    kinds = [kind for kind in KINDS if not only or kind in only or kind.partition("-")[2] in only]
    Random(seed).shuffle(kinds)
    episodes = []
    for number in range(runs):
        kind = kinds[number % len(kinds)]
        dice = Random(f"{seed}/{kind}/{number}")
        moments = BACKUP_MOMENTS if kind.startswith("backup") else RESTORE_MOMENTS
        drawn: Draw = {
            "seed": f"{seed}/{number}",
            "size": dice.randint(5 * MB, 40 * MB),
            "moment": dice.choice(moments),
        }
        drawn |= {"fraction": round(dice.random(), 3), "delay": round(dice.random() ** 3 / 5, 4), "entries": 100}
        drawn |= {"back": dice.random() < 0.5, "other": dice.random() < 0.6}
        cluster = "alpha" if kind.endswith("preempt") else ("alpha", "beta")[number % 2]
        episodes.append(Episode(cluster, kind, number, drawn))
    return episodes


def during_backup(site: DevSite, fault: str, draw: Draw) -> None:
    """Cause a fault while a backup is made; afterwards the dev node runs."""
    node, job, before = site.node, site.job(), names_in(site.backups)
    client = site.client.start("dev", "backup", site.desk)
    if not wait_for_backup(site, before, draw):
        site.missed.append(f"backup-{fault}")
    survives = ON_BACKUP[fault](site, node, job, client, draw)
    site.attempt(client)
    if survives and fault in KEPT:
        site.back_up()
        return
    site.up(_next(site, node, draw))


def during_restore(site: DevSite, fault: str, draw: Draw) -> None:
    """Cause a fault while the workspace is restored on another node; afterwards the dev node runs."""
    site.back_up()
    before = site.node
    site.down()
    others = [each for each in site.nodes if each != before]
    node = others[int(draw["fraction"] * len(others))]
    run = site.submit(node)
    if not wait_for_restore(site, node, run, draw):
        site.missed.append(f"restore-{fault}")
    site.until(site.job, 30)
    ON_RESTORE[fault](site, node, site.job(), None, draw)
    site.up(_next(site, node, draw))


def _next(site: DevSite, node: str, draw: Draw) -> str:
    """Return the node on which the dev node is started again."""
    others = [each for each in site.nodes if each not in (node, site.off)]
    return others[0] if draw["other"] or node == site.off else node


def on_one(site: DevSite, episodes: Sequence[Episode]) -> Outcome:
    cases = []
    site.prepare()
    for episode in episodes:
        began, draw, label = time.monotonic(), episode.draw, f"{site.name} {episode.label}"
        site.log(f"{episode.label}: {draw}")
        try:
            if not site.job():
                site.up()
            site.edit(draw["seed"], draw["size"])
            when, _, fault = episode.kind.partition("-")
            known = {*site.versions()}
            (during_backup if when == "backup" else during_restore)(site, fault, draw)
            published = len({*site.versions()} - known) > 0
            lost = site.check(label)
            cases.append(Case(episode.kind, time.monotonic() - began, lost, published))
        except Exception:
            site.log(traceback.format_exc())
            site.violation(f"{label}: the campaign itself failed, see the log")
        finally:
            site.mend()
    try:
        site.end()
    except Exception:
        site.log(traceback.format_exc())
        site.violation(f"{site.name}: the end of the campaign failed, see the log")
    return Outcome(cases, [*site.wrong, *dict.fromkeys(site.client.wrong)], site.missed)


def campaign(lab: Lab, work: Path, runtime: Path, episodes: Sequence[Episode]) -> Outcome:
    """Perform all cases, on both clusters at the same time."""
    names = sorted({episode.cluster for episode in episodes})
    with (work / "log").open("w") as log, ThreadPoolExecutor(len(names)) as pool:
        sites = [DevSite(lab, name, work, runtime, writer(log)) for name in names]
        mine = [[each for each in episodes if each.cluster == name] for name in names]
        found = list(pool.map(on_one, sites, mine))
    return Outcome(
        [case for each in found for case in each.cases],
        [text for each in found for text in each.wrong],
        [label for each in found for label in each.missed],
    )


def show(outcome: Outcome) -> None:
    print(f"{'fault':<18}{'cases':>7}{'published':>11}{'lost':>6}{'seconds':>9}")
    for kind in KINDS:
        mine = [case for case in outcome.cases if case.kind == kind]
        if mine:
            published, lost = sum(case.published for case in mine), sum(case.lost > 0 for case in mine)
            seconds = sum(case.seconds for case in mine) / len(mine)
            print(f"{kind:<18}{len(mine):>7}{published:>11}{lost:>6}{seconds:>9.0f}")
    print(f"{len(outcome.missed)} faults came too late to have an effect: {' '.join(outcome.missed)}")
    print("\n".join([*outcome.wrong, f"{len(outcome.wrong)} violations"]))


def main() -> int:
    asked = arguments("dev_nodes", __doc__, runs=48, faults=list(KINDS))
    episodes = draw(asked.seed, asked.runs, asked.only)

    def play(stage: Stage) -> bool:
        outcome = campaign(stage.lab, stage.work, stage.runtime, episodes)
        show(outcome)
        return not outcome.wrong

    return drive("dev_nodes", asked, f"{len(episodes)} faults", play)


if __name__ == "__main__":
    sys.exit(main())
