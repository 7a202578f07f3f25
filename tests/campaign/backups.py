"""`python -m tests.campaign.backups`: kills saves and restores at random moments. Exits with 1 on a violation.

After each fault the newest complete version has to restore exactly what was there when it was saved, at most the
changes since the last save may be missing, and nothing incomplete may be listed.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from random import Random

import msgspec

from tests.campaign.driver import arguments, print_replay
from tests.node.backup.trees import Editor, Fingerprint, fingerprint
from yurt.node.backup import BackupError, Workspace, newest, restore, verify, versions

FAULTS = {
    "save": "SIGKILL while a save runs, then another save on the same node",
    "move": "SIGKILL while a save runs, then a restore on another node",
    "restore": "SIGKILL while a restore runs, then another restore",
    "retain": "SIGKILL while old versions are dropped",
    "full": "the shared disk is full during a save",
    "damage": "a file of the backups is damaged, then another save on the same node",
}

PROGRAM = """
import resource, sys
from yurt.node.backup import BackupError, Workspace, restore, retain
word, backups, work, state, limit = sys.argv[1:]
if int(limit):
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(limit), int(limit)))
print("ready", flush=True)
try:
    if word == "save":
        Workspace(work, backups, state).save("test")
    elif word == "restore":
        restore(backups, int(state), work)
    else:
        retain(backups, last=1, days=0, weeks=0)
except BackupError as error:
    sys.exit(str(error))
"""


class Case(msgspec.Struct, frozen=True):
    """One fault: its random seed, and when it strikes, as a part of the usual duration."""

    fault: str
    seed: int
    moment: float


class Desk:
    """A workspace with some versions, and what was there at each save."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder = folder
        self.dice = Random(seed)
        self.backups = str(folder / "backups")
        self.work, self.state = folder / "node0" / "work", folder / "node0" / "state"
        self.work.mkdir(parents=True)
        self.saved: dict[int, Fingerprint] = {}
        for _ in range(3):
            self.edit(25)
            self.save()

    def edit(self, times: int) -> None:
        Editor(self.work, self.dice).edit(times)
        large = self.work / f"data{self.dice.randrange(3)}"
        if large.is_file() or not large.exists():  # an edit may have put a folder in its place
            large.write_bytes(self.dice.randbytes(400_000))

    def save(self) -> None:
        there = fingerprint(self.work)
        workspace = Workspace(str(self.work), self.backups, str(self.state))
        workspace.read_in_turn(lambda: False)
        version = workspace.save("test")
        if version is not None:
            self.saved[version.number] = there

    def damage(self) -> None:
        """Change a bit of a file, cut it, or remove it if it is a pack."""
        file = self.dice.choice(sorted(each for each in Path(self.backups).iterdir() if each.name[0] in "piv"))
        content = bytearray(file.read_bytes())
        content[self.dice.randrange(len(content))] ^= 1 << self.dice.randrange(8)
        kind = self.dice.choice(["flip", "cut", "remove"])
        if kind == "remove" and file.name.startswith("p"):
            file.unlink()
        else:
            file.write_bytes(content if kind == "flip" else content[: len(content) // 2])

    def start(self, word: str, work: str = "", state: str = "", limit: int = 0) -> subprocess.Popen[str]:
        """Start a process and wait until its work begins."""
        command = [sys.executable, "-c", PROGRAM, word, self.backups, work, state, str(limit)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert process.stdout is not None
        process.stdout.readline()
        return process

    def kill(self, process: subprocess.Popen[str], after: float) -> None:
        with suppress(subprocess.TimeoutExpired):
            process.wait(after)
        process.kill()
        process.communicate()


def run_case(folder: Path, case: Case) -> list[str]:
    """Run one case in an empty folder; return its violations."""
    desk = Desk(folder, case.seed)
    usual = _usual(desk)
    before = max(desk.saved)
    desk.edit(10)
    unsaved = fingerprint(desk.work)
    if case.fault in ("save", "move"):
        desk.kill(desk.start("save", str(desk.work), str(desk.state)), usual * case.moment)
    elif case.fault == "full":
        done = desk.start("save", str(desk.work), str(desk.state), int(300_000 * case.moment) + 1)
        done.communicate()
    elif case.fault == "damage":
        desk.damage()
        desk.save()
    elif case.fault == "restore":
        target = folder / "node1" / "work"
        desk.kill(desk.start("restore", str(target), str(before)), usual * case.moment)
        if target.exists() and fingerprint(target) != desk.saved[before]:
            return ["an incomplete restore is at its target"]
        shutil.rmtree(target, ignore_errors=True)
    else:
        desk.kill(desk.start("retain"), usual * case.moment / 3)
    return _judge(desk, case, before, unsaved)


def _usual(desk: Desk) -> float:
    """Return how long a save usually takes here."""
    desk.edit(3)
    began = time.monotonic()
    desk.save()
    return time.monotonic() - began


def _judge(desk: Desk, case: Case, before: int, unsaved: Fingerprint) -> list[str]:
    wrong = []
    found = newest(desk.backups)
    if found is None or found.number < before:
        return [f"version {before} is gone: {found}"]
    if found.number > before:
        desk.saved[found.number] = unsaved
    for version in versions(desk.backups):
        if case.fault == "damage" and version.number < found.number:
            continue
        try:
            verify(desk.backups, version.number)
        except BackupError as error:
            wrong.append(f"version {version.number} is listed, but: {error}")
    target, state = desk.folder / "node2" / "work", desk.folder / "node2" / "state"
    try:
        restore(desk.backups, found.number, str(target), str(state))
        if fingerprint(target) != desk.saved[found.number]:
            wrong.append(f"version {found.number} restores something else")
        if left := [each.name for each in target.parent.iterdir() if each.name not in ("work", "state")]:
            wrong.append(f"a restore left {left}")
        if case.fault in ("move", "restore"):
            desk.work, desk.state = target, state
        wrong += _go_on(desk)
    except BackupError as error:
        wrong.append(str(error))
    return wrong


def _go_on(desk: Desk) -> list[str]:
    """Edit and save once more, as the next process on this node or on another one."""
    desk.edit(3)
    workspace = Workspace(str(desk.work), desk.backups, str(desk.state))
    there = fingerprint(desk.work)
    version = workspace.save("after the fault")
    if version is None or version.fork:
        return [f"the save after the fault made {version}"]
    target = desk.folder / "node3" / "work"
    restore(desk.backups, version.number, str(target))
    wrong = [] if fingerprint(target) == there else ["the save after the fault restores something else"]
    hidden = [each.name for each in Path(desk.backups).iterdir() if each.name.startswith(".yurt")]
    return wrong + ([f"it left {hidden}"] if hidden else [])


def draw(seed: int, runs: int, only: Sequence[str] = ()) -> list[Case]:
    names = [name for name in FAULTS if not only or name in only]
    cases = []
    for number in range(max(runs, len(names))):
        dice = Random(f"{seed}/{number}")
        cases.append(Case(names[number % len(names)], dice.getrandbits(32), round(dice.uniform(0, 1.3), 3)))
    return cases


def main() -> int:
    asked = arguments("backups", __doc__, runs=120, faults=list(FAULTS))
    cases = draw(asked.seed, asked.runs, asked.only)
    print(f"seed {asked.seed}: {len(cases)} backups under faults", flush=True)
    began = time.monotonic()
    violations = []
    for number, case in enumerate(cases):
        with tempfile.TemporaryDirectory(prefix="yc-", dir="/tmp") as folder:
            violations += [f"case {number}, {case}: {text}" for text in run_case(Path(folder), case)]
    for fault, count in Counter(case.fault for case in cases).items():
        print(f"{fault:<10}{count:>5}  {FAULTS[fault]}")
    print("\n".join([*violations, f"{len(violations)} violations"]))
    print_replay("backups", asked, began)
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
