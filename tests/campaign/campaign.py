"""Runs a campaign: draws random episodes from a seed, performs them on both clusters in parallel, checks the result."""

from __future__ import annotations

import json
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random
from typing import TextIO

import msgspec

from tests.campaign.faults import FAULTS, finish
from tests.campaign.judge import Case, violations
from tests.campaign.moments import Draw
from tests.campaign.site import Site
from yurt.lab import Lab

NEAR_CRASH = 120.0
"""Seconds around a crash of the controller in which it may reuse job ids and confuse jobs."""

MOST_NODES = 4
"""Maximum number of episodes with a disconnected node, which take a minute each."""


class Episode(msgspec.Struct, frozen=True):
    """One fault on one cluster with its random parameters."""

    cluster: str
    fault: str
    number: int
    draw: Draw

    @property
    def label(self) -> str:
        return f"{self.fault}-{self.number}"


class Outcome(msgspec.Struct, frozen=True):
    """Result of a campaign."""

    cases: list[Case]
    violations: list[str]
    missed: list[str]
    """Episodes whose fault came too late to have an effect."""


def draw(seed: int, runs: int, only: Sequence[str] = ()) -> list[Episode]:
    """Return the episodes of a seed. `only` selects faults and does not change their episodes."""
    episodes = []
    for name, fault in FAULTS.items():
        number = max(len(fault.clusters), round(runs * fault.share / 100 / fault.each))
        if name == "node":
            number = min(number, MOST_NODES)
        for index in range(number):
            drawn = fault.draw(Random(f"{seed}/{name}/{index}"))
            episodes.append(Episode(fault.clusters[index % len(fault.clusters)], name, index, drawn))
    Random(seed).shuffle(episodes)
    return [episode for episode in episodes if not only or episode.fault in only]


class Campaign:
    """Performs episodes on a running lab. `folder` and `runtime` (whose path must be short) are empty folders."""

    def __init__(self, lab: Lab, folder: Path, runtime: Path, log: Callable[[str], None]) -> None:
        self.lab, self.folder, self.runtime, self.log = lab, folder, runtime, log

    def run(self, episodes: Sequence[Episode], *, patience: float) -> Outcome:
        """Perform all episodes, then wait up to `patience` seconds until all runs have finished."""
        names = sorted({episode.cluster for episode in episodes})

        def on_one(name: str) -> Outcome:
            site = Site(self.lab, name, self.folder, self.runtime, self.log)
            try:
                return self._on(site, [each for each in episodes if each.cluster == name], patience)
            finally:
                site.restore()

        with ThreadPoolExecutor(len(names)) as pool:
            found = list(pool.map(on_one, names))
        return Outcome(
            [case for each in found for case in each.cases],
            [text for each in found for text in each.violations],
            [label for each in found for label in each.missed],
        )

    def _on(self, site: Site, episodes: Sequence[Episode], patience: float) -> Outcome:
        site.prepare()
        broken = []
        for episode in episodes:
            site.log(f"{episode.label}: {json.dumps(episode.draw)}")
            try:
                FAULTS[episode.fault].perform(site, episode.label, episode.draw)
            except Exception:
                site.log(traceback.format_exc())
                broken.append(f"{site.name} {episode.label}: the campaign itself failed, see the log")
            site.settle()
            if site.after is not None and site.over():
                finish(site)
        finish(site)
        self._wait(site, patience)
        cases = judged(site)
        wrong = [f"{site.name} {text}" for case in cases for text in violations(case)]
        known = {case.run for case in cases}
        strays = {start.run for start in site.starts()} - known
        wrong += [f"{site.name} {run}: its code ran, but it is in no index" for run in sorted(strays)]
        wrong += dict.fromkeys(text for client in site.clients for text in client.wrong)
        wrong += [f"{site.name}: left in the queue: {row}" for row in site.drained()]
        return Outcome([case for case in cases if case.label != "none"], [*broken, *wrong], site.missed)

    def _wait(self, site: Site, patience: float) -> None:
        deadline = time.monotonic() + patience
        while time.monotonic() < deadline:
            open_ones = [client for client in site.clients if any(not each.status.final for each in client.entries())]
            if not open_ones:
                return
            site.resume_nodes()
            for client in open_ones:
                client.once()
            time.sleep(1)


def judged(site: Site) -> list[Case]:
    """Return all runs in the indexes of a site's clients."""
    starts, begun = site.starts(), Counter(site.begun())
    called = Counter(row[1] for row in site.steps.submissions() if row[0] == "called")
    runs = {entry.run.id: entry.run for client in site.clients for entry in client.entries()}
    statuses = [(entry.run.id, entry.status) for client in site.clients for entry in client.entries()]
    return [
        Case(
            run=run.id,
            label=run.name,
            statuses=[status for each, status in statuses if each == run.id],
            starts=[start for start in starts if start.run == run.id],
            restarts=run.restart_policy.max_requeues,
            cancelled=run.id in site.cancelled,
            cancelled_at=site.cancelled_at.get(run.id),
            near_crash=any(abs(crash - run.created) < NEAR_CRASH for crash in site.crashes),
            called=called[run.id],
            begun=begun[run.id],
            passed=site.passed(run.folder),
        )
        for run in runs.values()
    ]


def writer(file: TextIO) -> Callable[[str], None]:
    """Return a function that writes lines with the time; any thread can call it."""
    lock = threading.Lock()

    def write(text: str) -> None:
        with lock:
            file.write(f"{time.strftime('%H:%M:%S')} {text}\n")
            file.flush()

    return write
