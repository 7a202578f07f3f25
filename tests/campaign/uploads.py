"""`python -m tests.campaign.uploads`: uploads large code under random faults. Exits with 1 on a violation.

Each run appends the checksum of a file of its code to a ledger. It is a violation if a run started twice or with other
content, was not cancelled and did not complete, or left a part of an upload on the site.
"""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import msgspec

from tests.campaign.campaign import writer
from tests.campaign.driver import Stage, arguments, drive
from tests.campaign.site import SHARED, Site
from yurt.lab import Lab
from yurt.lab.relay import Rules

Draw = dict[str, Any]

WORK = 'until echo "$YURT_RUN_ID $(sha256sum < large)" >> "$0"; do sleep 0.2; done'
MB = 1_000_000
PIECE = 1 << 16


class Episode(msgspec.Struct, frozen=True):
    """One upload to one cluster, its fault and its random parameters."""

    cluster: str
    fault: str
    label: str
    draw: Draw


class Case(msgspec.Struct, frozen=True):
    """One run as recorded in an index, and the starts of its code."""

    id: str
    fault: str
    state: str
    reason: str
    sums: list[str]
    """The checksum that each start of its code found."""
    expected: str
    cancelled: bool


class Outcome(msgspec.Struct, frozen=True):
    """Result of a campaign."""

    cases: list[Case]
    wrong: list[str]
    missed: list[str] = []
    """Episodes whose fault came too late to have an effect."""


def draw(seed: int, runs: int, only: Sequence[str] = ()) -> list[Episode]:
    names = [name for name in FAULTS if not only or name in only]
    episodes = []
    for number in range(max(runs, len(names))):
        fault = names[number % len(names)]
        dice = Random(f"{seed}/{fault}/{number}")
        size, rate = dice.randint(3 * MB // 2, 4 * MB), dice.randint(3 * MB // 2, 4 * MB)
        drawn: Draw = {"size": size, "rate": rate, "seconds": round(dice.uniform(0.2, size / rate + 1.5), 2)}
        drawn |= {"salt": dice.getrandbits(32), "fraction": round(dice.random(), 3)}
        drawn |= {"group": dice.random() < 0.5, "renewed": dice.random() < 0.5, "copy": dice.random() < 0.5}
        drawn |= {"ending": dice.choice(["reset", "reset", "stall"]), "connections": dice.choice([0, 1])}
        drawn |= {"victim": dice.choice(["master", "session", "master session"]), "then": dice.choice(["ps", "agent"])}
        drawn |= _step(dice, size)
        episodes.append(Episode(dice.choice(["alpha", "alpha", "beta"]), fault, f"{fault}-{number}", drawn))
    return episodes


def _step(dice: Random, size: int) -> Draw:
    """Choose the step of the receiver at which it is killed: while the content arrives, or later."""
    program = dice.choice(["head", "head", "head", "any", "git", "mv", "rm", "wc"])
    longest = {"head": size // PIECE, "any": size // PIECE + 20}.get(program, 3)
    found = {"program": program, "step": dice.randint(1, longest), "when": dice.choice(["before", "after"])}
    return found | {"what": dice.choice(["inner", "all", "self" if program == "head" else "all"])}


def content(draw: Draw) -> bytes:
    return Random(draw["salt"]).randbytes(draw["size"])


def start(site: Site, label: str, draw: Draw, *, clocks: str = "") -> subprocess.Popen[bytes]:
    """Submit a run with new code over a slow link."""
    (site.client.project / "large").write_bytes(content(draw))
    arguments = ["run", "--context", site.name, "--name", label, "--cpus", "1", "--mem", "50"]
    return site.client.start(*arguments, "sh", "-c", WORK, f"/{SHARED}/{site.ledger}", clocks=clocks)


def slow(site: Site, draw: Draw, **more: Any) -> None:
    """Slow the link down for new connections, and close the others."""
    site.client.disconnect()
    site.set_link_faults(Rules(rate=draw["rate"], **more))


def wait(site: Site, label: str, process: subprocess.Popen[bytes], draw: Draw) -> None:
    """Wait for the moment of the fault, counted from the time at which the run is recorded."""
    site.until(lambda: site.newest(label) or process.poll() is not None, 60, pause=0.02)
    time.sleep(draw["seconds"])
    if process.poll() is not None:
        site.missed.append(label)


def kill(process: subprocess.Popen[bytes], *, group: bool) -> None:
    """Kill yurt, and with `group` also its ssh processes, which otherwise end a moment later."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL) if group else process.kill()


def client(site: Site, label: str, draw: Draw) -> None:
    """The client is killed; the next one uses the same connection or another."""
    slow(site, draw)
    process = start(site, label, draw)
    wait(site, label, process, draw)
    kill(process, group=draw["group"])
    site.client.end(process)
    if draw["renewed"]:
        site.client.disconnect()


def cut(site: Site, label: str, draw: Draw) -> None:
    """The connection ends at any byte of the upload, or passes nothing more."""
    slow(
        site,
        draw,
        cut_at=int(draw["size"] * draw["fraction"]),
        ending=draw["ending"],
        connections=draw["connections"],
    )
    site.client.end(start(site, label, draw, clocks="silent=3"))
    if draw["ending"] == "reset" and not site.was_cut():
        site.missed.append(label)
    site.client.disconnect()


def down(site: Site, label: str, draw: Draw) -> None:
    """The link to the login host is taken down for a moment."""
    slow(site, draw)
    process = start(site, label, draw, clocks="silent=3")
    wait(site, label, process, draw)
    site.lab.faults.cut(site.name)
    time.sleep(3 * draw["fraction"])
    if draw["group"]:
        kill(process, group=True)
    site.lab.faults.heal(site.name)
    site.client.end(process)
    site.client.disconnect()


def receiver(site: Site, label: str, draw: Draw) -> None:
    """The receiver on the login host is killed, or one of its programs."""
    slow(site, draw)
    site.steps.arm(draw["step"], draw["when"], draw["what"], program=draw["program"], amount=draw["fraction"] / 20)
    site.client.end(start(site, label, draw))
    if not site.steps.fired():
        site.missed.append(label)


def ssh(site: Site, label: str, draw: Draw) -> None:
    """The ssh processes of the client are killed."""
    slow(site, draw)
    process = start(site, label, draw)
    wait(site, label, process, draw)
    site.client.kill_ssh(*draw["victim"].split())
    site.client.end(process)


def twins(site: Site, label: str, draw: Draw) -> None:
    """Two processes upload the same code, from one index or from a copy on another machine; the first is killed."""
    slow(site, draw)
    process = start(site, label, draw)
    wait(site, label, process, draw)
    other = site.client
    if draw["copy"]:
        process.send_signal(signal.SIGSTOP)  # files of the index that disappear during the copy would be an error
        other = site.client.copy(f"{site.client.name}-{label}")
        process.send_signal(signal.SIGCONT)
        site.copies.append(other)
    second = other.start("agent", "once")
    third = start(site, label, draw)
    time.sleep(draw["fraction"])
    kill(process, group=draw["group"])
    site.client.end(process)
    other.end(second)
    site.client.end(third)


def cancel(site: Site, label: str, draw: Draw) -> None:
    """The run is cancelled; its client may be killed before."""
    slow(site, draw)
    process = start(site, label, draw)
    wait(site, label, process, draw)
    if draw["group"]:
        kill(process, group=True)
    if run := site.newest(label):
        site.cancel(run)
    site.client.end(process)


FAULTS: dict[str, Callable[[Site, str, Draw], None]] = {
    "client": client,
    "cut": cut,
    "down": down,
    "receiver": receiver,
    "ssh": ssh,
    "twins": twins,
    "cancel": cancel,
}


def judge(case: Case) -> list[str]:
    """Return the violations of one run."""
    text = f"{case.id} ({case.fault}, {case.state}: {case.reason})"
    wrong = []
    if len(case.sums) > 1:
        wrong.append(f"{text} started {len(case.sums)} times")
    if any(found != case.expected for found in case.sums):
        wrong.append(f"{text} ran with other content: {case.sums}")
    if case.state == "completed" and not case.sums:
        wrong.append(f"{text} never started")
    if case.state == "cancelled" and "before it" in case.reason and case.sums:
        wrong.append(f"{text} was started")
    if case.state != "completed" and not (case.cancelled and case.state == "cancelled"):
        wrong.append(f"{text} did not complete")
    return wrong


def leftovers(site: Site, label: str) -> list[str]:
    """Return what an upload left on the site, and remove it.

    The site keeps the part of a cancelled run for a day, and what a killed receiver was unpacking.
    """
    run = next((each.run for each in site.client.entries() if each.run.name == label), None)
    if run is None:
        return []
    folder = site.steps.root.joinpath(run.folder[1:]).parents[1] / "incoming"

    def found() -> list[str]:
        paths = folder.iterdir() if folder.exists() and run.id not in site.cancelled else []
        names = [path.name for path in paths if path.name != ".link"]  # tells whether the disk has hard links
        return [name for name in names if name.startswith("part-") or not label.startswith("receiver")]

    site.until(lambda: not found(), 10)
    left = found()
    for path in folder.iterdir() if folder.exists() else []:
        subprocess.run(["rm", "-rf", str(path)], check=True)
    return left


def campaign(lab: Lab, work: Path, runtime: Path, episodes: Sequence[Episode], patience: float) -> Outcome:
    log = (work / "log").open("w")

    def on(name: str) -> Outcome:
        site = Site(lab, name, work, runtime, writer(log))
        try:
            return on_one(site, [each for each in episodes if each.cluster == name], patience)
        finally:
            site.restore()

    names = sorted({episode.cluster for episode in episodes})
    with log, ThreadPoolExecutor(len(names)) as pool:
        found = list(pool.map(on, names))
    return Outcome(
        [case for each in found for case in each.cases],
        [text for each in found for text in each.wrong],
        [label for each in found for label in each.missed],
    )


def on_one(site: Site, episodes: Sequence[Episode], patience: float) -> Outcome:
    site.prepare()
    wrong = []
    for episode in episodes:
        site.log(f"{episode.label}: {episode.draw}")
        try:
            FAULTS[episode.fault](site, episode.label, episode.draw)
            site.set_link_faults()
            site.client.call(*{"ps": ["ps"], "agent": ["agent", "once"]}[episode.draw["then"]])
            site.settle()
            wrong += [f"{site.name} {episode.label}: it left {name}" for name in leftovers(site, episode.label)]
        except Exception:
            site.log(traceback.format_exc())
            wrong.append(f"{site.name} {episode.label}: the campaign itself failed, see the log")
            site.settle()
    deadline = time.monotonic() + patience
    for each in site.clients:
        while any(not entry.status.final for entry in each.entries()) and time.monotonic() < deadline:
            each.once()
            time.sleep(1)
    cases = cases_of(site, episodes)
    wrong += [f"{site.name} {text}" for case in cases for text in judge(case)]
    wrong += dict.fromkeys(text for each in site.clients for text in each.wrong)
    return Outcome(cases, wrong, site.missed)


def cases_of(site: Site, episodes: Sequence[Episode]) -> list[Case]:
    """Return the runs of all indexes of a site, one entry per index."""
    sums: dict[str, list[str]] = {}
    for line in (site.shared / site.ledger).read_text().splitlines():
        run, *rest = line.split()
        sums.setdefault(run, []).append(rest[0] if rest else "")
    expected = {each.label: hashlib.sha256(content(each.draw)).hexdigest() for each in episodes}
    return [
        Case(
            id=entry.run.id,
            fault=entry.run.name.partition("-")[0],
            state=entry.status.state,
            reason=entry.status.reason,
            sums=sums.get(entry.run.id, []),
            expected=expected[entry.run.name],
            cancelled=entry.run.id in site.cancelled,
        )
        for client in site.clients
        for entry in client.entries()
    ]


def show(outcome: Outcome) -> None:
    print(f"{'fault':<12}{'runs':>8}{'once':>8}{'never':>8}{'twice':>8}{'cancelled':>11}")
    rows = {case.id: case for case in outcome.cases}
    for fault in FAULTS:
        mine = [case for case in rows.values() if case.fault == fault]
        count = Counter(min(len(case.sums), 2) for case in mine)
        ended = sum(case.state == "cancelled" for case in mine)
        print(f"{fault:<12}{len(mine):>8}{count[1]:>8}{count[0]:>8}{count[2]:>8}{ended:>11}")
    print(f"{len(outcome.missed)} faults came too late to have an effect")
    print("\n".join([*outcome.wrong, f"{len(outcome.wrong)} violations"]))


def main() -> int:
    asked = arguments("uploads", __doc__, runs=42, faults=list(FAULTS), timeout=200)
    episodes = draw(asked.seed, asked.runs, asked.only)

    def play(stage: Stage) -> bool:
        outcome = campaign(stage.lab, stage.work, stage.runtime, episodes, asked.timeout)
        show(outcome)
        return not outcome.wrong

    return drive("uploads", asked, f"{len(episodes)} uploads", play)


if __name__ == "__main__":
    sys.exit(main())
