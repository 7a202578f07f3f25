"""`python -m tests.campaign.watch`: kills whoever copies growing files of runs. Exits with 1 on a violation.

In each case files of three runs on alpha are appended to, replaced and shortened, while a process copies them and is
killed, or loses its connection in the middle of a file. It is a violation if a copy ever changes in another way than by
more bytes at its end, or if the copies are not the files once everything is quiet.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path
from random import Random
from typing import NamedTuple

from tests.campaign.driver import Stage, arguments, drive
from yurt.contexts import connect
from yurt.errors import YurtError
from yurt.lab import Lab
from yurt.lab.relay import Rules
from yurt.testing.waiting import eventually
from yurt.tracking import follow
from yurt.tracking.follow import Unit
from yurt.tracking.followed import Followed

PROJECT = "yurt/projects/watch-aaaa"
FOLDER = f"/lustre/scratch/alice/{PROJECT}/runs"
NAMES = ["work/runs/a/events.out.tfevents.1.node", "outputs/tb/events.out.tfevents.2.node", "metrics.jsonl"]
FAULTS = ("kill", "reset", "both")
COPIES = "import sys; from tests.campaign.watch import copy; copy(sys.argv[1:])"


def copy(runs: list[str]) -> None:
    """Copy what is new, again and again."""
    while True:
        try:
            look(runs)
        except YurtError:
            time.sleep(0.05)


def look(runs: list[str]) -> bool:
    """Make one request; return whether another one is needed."""
    units = [Unit(run=run, context="alpha", folder=f"{FOLDER}/{run}") for run in runs]
    files = connect.named_backend("alpha").files
    return follow.look(files, "alpha", units, ["metrics", "events"], deep=True).again


class Case:
    """Three runs whose files change, a process that copies them, and what goes wrong."""

    def __init__(self, lab: Lab, scratch: Path, seed: int, number: int, fault: str) -> None:
        self.lab, self.scratch, self.fault = lab, scratch, fault
        self.dice = Random(f"{seed}/{number}")
        self.runs = [f"1nfaaa0-w{number}x{each}" for each in range(3)]
        self.over = threading.Event()
        self.wrong: list[str] = []

    def file(self, run: str, name: str) -> Path:
        return self.scratch / PROJECT / "runs" / run / name

    def change(self) -> None:
        """Change one of the files as a script might."""
        file = self.file(self.dice.choice(self.runs), self.dice.choice(NAMES))
        what, content = self.dice.random(), self.dice.randbytes(self.dice.choice([30, 3000, 300_000]))
        if what < 0.85 or not file.exists():
            with file.open("ab") as stream:
                stream.write(content)
        elif what < 0.93:
            file.write_bytes(content)
        else:
            os.truncate(file, self.dice.randrange(file.stat().st_size + 1))

    def play(self) -> list[str]:
        alice, project = self.scratch.stat(), self.scratch / PROJECT
        for run in self.runs:
            for name in NAMES:
                self.file(run, name).parent.mkdir(parents=True, exist_ok=True)
        for folder in (project.parent.parent, project.parent, project, *project.rglob("*")):
            os.chown(folder, alice.st_uid, alice.st_gid)
            folder.chmod(0o700)
        writer = threading.Thread(target=self._write)
        writer.start()
        for _round in range(3):
            if self.fault != "kill":
                self.lab.faults.delay("alpha", Rules(cut_at=self.dice.randrange(5000, 400_000), direction="down"))
            before = self._copies()
            process = subprocess.Popen([sys.executable, "-c", COPIES, *self.runs], stderr=subprocess.DEVNULL)
            time.sleep(self.dice.uniform(0.5, 1.5))
            process.kill()
            process.wait()
            self.lab.faults.delay("alpha", Rules())
            self._compare(before)
        self.over.set()
        writer.join()
        eventually(self._nothing_new)
        for run in self.runs:
            found = {path: each.file.read_bytes() for path, each in Followed(run).copies().items()}
            there = {name: self.file(run, name).read_bytes() for name in NAMES if self.file(run, name).exists()}
            if found != there:
                sizes = {name: (len(found.get(name, b"")), len(content)) for name, content in there.items()}
                self.wrong.append(f"{run}: the copies are not the files: {sizes}")
        return self.wrong

    def _write(self) -> None:
        while not self.over.is_set():
            self.change()
            time.sleep(0.01)

    def _nothing_new(self) -> bool:
        """Make a request; a connection that was opened under the rules of a fault may still be cut."""
        try:
            return not look(self.runs)
        except YurtError:
            return False

    def _copies(self) -> dict[Path, bytes]:
        return {each.file: each.file.read_bytes() for run in self.runs for each in Followed(run).copies().values()}

    def _compare(self, before: dict[Path, bytes]) -> None:
        for file, content in self._copies().items():
            if not content.startswith(before.get(file, b"")):
                self.wrong.append(f"{file}: the copy was not only appended to")


class Outcome(NamedTuple):
    """Result of a campaign."""

    wrong: list[str]
    size: int
    """Bytes of the last copies."""
    replaced: int
    """How often a copy was replaced by a new one."""


def campaign(lab: Lab, scratch: Path, seed: int, cases: int, only: list[str]) -> Outcome:
    """Play all cases."""
    wrong, size, replaced = [], 0, 0
    for number in range(cases):
        fault = (only or FAULTS)[number % len(only or FAULTS)]
        case = Case(lab, scratch, seed, number, fault)
        wrong += [f"case {number} ({fault}): {text}" for text in case.play()]
        shutil.rmtree(scratch / PROJECT)
        last = [each for run in case.runs for each in Followed(run).copies().values()]
        size += sum(each.size for each in last)
        replaced += sum(each.generation for each in last)
    return Outcome(wrong, size, replaced)


def main() -> int:
    asked = arguments("watch", __doc__, runs=50, faults=FAULTS)

    def play(stage: Stage) -> bool:
        from tests.campaign.site import Site

        site = Site(stage.lab, "alpha", stage.work, stage.runtime, print)
        outcome = campaign(stage.lab, site.shared, asked.seed, asked.runs, asked.only)
        print(f"{outcome.size >> 20} MiB in the last copies; {outcome.replaced} copies were replaced")
        print("\n".join([*outcome.wrong, f"{asked.runs} cases, {len(outcome.wrong)} violations"]))
        return not outcome.wrong

    return drive("watch", asked, f"{asked.runs} cases", play)


if __name__ == "__main__":
    sys.exit(main())
