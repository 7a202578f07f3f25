"""A cluster in the campaign of dev nodes: its dev node, its disks, and each state that the workspace had."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.campaign.client import Client
from tests.campaign.dev_trees import EDIT, PRINT
from yurt.lab import Lab
from yurt.lab.cluster import inside
from yurt.lab.topology import ALICE
from yurt.model import layout
from yurt.node import backup

BACKUPS = "lustre/scratch/alice/yurt/workspaces"
FOREIGN = "not yurt's\n"
NODE_LOST = 900
"""Seconds: Slurm ends the job of a node that does not respond after several minutes, and `dev up` waits for that."""


def names_in(folder: Path) -> set[str]:
    """Return the names in a folder; none if it does not exist."""
    return {each.name for each in folder.iterdir()} if folder.is_dir() else set()


class DevSite:
    """One dev node of alice on a cluster of the lab, and her laptop. For use by one thread only."""

    def __init__(self, lab: Lab, name: str, folder: Path, runtime: Path, log: Callable[[str], None]) -> None:
        self.lab, self.name, self.cluster = lab, name, lab.cluster(name)
        self._log = log
        self.desk = f"c{random.SystemRandom().randrange(10**6)}"
        self.folder = folder
        project = folder / f"project-{name}"
        project.mkdir(parents=True)
        self.client = Client(name, data=folder / name, runtime=runtime / name, project=project, log=self.log)
        self.prints: dict[int, str] = {}
        """The fingerprint of each generation of the workspace, taken on the node before it was saved."""
        self.saved: dict[int, int] = {}
        """The generation of each version that was reported as complete."""
        self.checked: set[int] = set()
        self.generation = 0
        self.least = 0
        """The generation of the newest version that is not a fork."""
        self.node = ""
        self.off = ""
        """The node without power."""
        self.wrong: list[str] = []
        self.missed: list[str] = []

    def log(self, text: str) -> None:
        self._log(f"{self.name} {text}")

    def violation(self, text: str) -> None:
        self.wrong.append(text)
        self.log(f"VIOLATION {text}")

    # The disks

    @property
    def nodes(self) -> list[str]:
        return [host.name for host in self.cluster.spec.of_role("node")]

    def root(self, host: str = "") -> Path:
        return Path(f"/proc/{self.cluster.pid(host or self.cluster.spec.login.name)}/root")

    @property
    def backups(self) -> Path:
        return self.root() / BACKUPS / self.desk

    @property
    def workspace(self) -> str:
        return f"/scratch/alice/work-{self.desk}"

    def on_node(self, node: str, script: str, *words: str) -> str:
        """Run a Python script on a node as alice."""
        own = ["-S", str(ALICE.uid), "-G", str(ALICE.uid)]
        argv = ["nsenter", "-a", *own, "-t", str(self.cluster.pid(node)), "python3", "-c", script, *words]
        done = subprocess.run(argv, check=False, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def as_root(self, *words: str) -> str:
        """Run a command of Slurm as its administrator."""
        argv = inside(self.cluster.pid("ctl"), [*words])
        return subprocess.run(argv, check=False, capture_output=True, text=True).stdout.strip()

    def edit(self, seed: str, size: int) -> None:
        """Change the workspace; `size` bytes are new. Record its fingerprint."""
        self.generation += 1
        self.on_node(self.node, EDIT, self.workspace, str(self.generation), seed, str(size))
        number, found = self.fingerprint()
        assert number == self.generation
        self.prints[number] = found

    def fingerprint(self) -> tuple[int, str]:
        """Return the generation of the workspace on the present node, and its fingerprint."""
        number, _, found = self.on_node(self.node, PRINT, self.workspace).partition(" ")
        return int(number), found

    def _foreign(self) -> Iterator[Path]:
        for node in self.cluster.pids().keys() & {*self.nodes}:
            yield self.root(node) / "scratch/alice/notes.txt"
            yield self.root(node) / f"{self.workspace[1:]}-mine" / "thesis.tex"
        yield self.backups.parent / "notes.txt"
        yield self.backups / "notes.txt"

    # The user

    def yurt(self, *words: str, seconds: float = 240) -> str:
        return self.client.call(*words, seconds=seconds)

    def data(self, *words: str, seconds: float = 240) -> Any:
        """Return the data of a yurt command; empty if it failed."""
        output = self.yurt(*words, "--json", seconds=seconds)
        start = output.find("{")
        return json.JSONDecoder().raw_decode(output[max(start, 0) :])[0].get("data", {})

    def prepare(self) -> None:
        """Start with an empty workspace and files that are not yurt's."""
        self.yurt("context", "probe", self.name)
        self.up()
        _number, self.prints[0] = self.fingerprint()
        for path in self._foreign():
            for folder in (path.parents[1], path.parent):  # if it is root's, yurt rightly uses another one
                if not folder.exists():
                    folder.mkdir(mode=0o700)
                    os.chown(folder, ALICE.uid, ALICE.uid)
            path.write_text(FOREIGN)
            os.chown(path, ALICE.uid, ALICE.uid)

    def _options(self, node: str) -> list[str]:
        where = ["--node", node] if node else []
        partition = ["--partition", random.choice(["spot", "scavenge"])] if self.name == "alpha" else []
        return [self.desk, "--context", self.name, "--time", "1h", *where, *partition]

    def up(self, node: str = "") -> None:
        """Get the dev node, on a given node or any; the workspace is ready on return."""
        for _again in range(3):  # a run whose node has failed ends while it is followed
            known = len(self.client.wrong)
            found = self.data("dev", "up", *self._options(node), seconds=NODE_LOST)
            if found:
                break
            if "run-not-running" in self.client.wrong[-1]:
                del self.client.wrong[known:]
        assert found["phase"] == "ready" and found["workspace"] == self.workspace, found
        self.node = found["node"]
        self.log(f"ready on {self.node}: v{found['version']}, run {found['run']}, job {found['job']}")

    def submit(self, node: str) -> str:
        """Submit the dev node and do not wait for it; return its run."""
        return str(self.data("dev", "up", *self._options(node), "--no-wait")["run"])

    def back_up(self) -> None:
        """Save the workspace."""
        version = int(self.data("dev", "backup", self.desk)["version"]["number"])
        self.saved[version] = self.least = self.generation

    def down(self) -> None:
        """Save the workspace and end the dev node."""
        version = int(self.data("dev", "down", self.desk)["version"])
        self.saved[version] = self.least = self.generation

    def attempt(self, process: subprocess.Popen[bytes]) -> None:
        """Wait for a yurt command that may fail."""
        if process.pid in self.client.numbers:
            known = len(self.client.wrong)
            self.client.end(process)
            del self.client.wrong[known:]

    def mend(self) -> None:
        """Undo the fault of a case."""
        if self.off:
            self.lab.faults.start_node(f"{self.name}:{self.off}")
            self.off = ""

    def end(self) -> None:
        """End the dev node, and check that the backups folder has no pack that no version needs."""
        if self.job():
            self.back_up()
            self.down()
            needed = {name for number in self.versions() for name in backup.needs(str(self.backups), number)}
            packs = {each for each in names_in(self.backups) if each.startswith(("p", "i"))}
            if packs - needed:
                self.violation(f"{self.name}: no version needs {sorted(packs - needed)}")
        self.client.disconnect()

    def job(self) -> str:
        """Return the job of the dev node that is not over."""
        rows = self.as_root("squeue", "-h", "-t", "PD,R", "-o", "%i %j").splitlines()
        runs = [layout.job_name(each.run.id) for each in self.client.entries() if each.run.name == self.desk]
        return next((row.split()[0] for row in rows if row.split()[1] in runs), "")

    # What is there

    def processes(self, node: str) -> list[tuple[int, str]]:
        """Return the holder and the programs that it started on a node: (pid, name)."""
        with suppress(OSError):
            space = os.readlink(f"/proc/{self.cluster.pid(node)}/ns/pid")
            found = []
            for entry in Path("/proc").iterdir():
                if entry.name.isdigit():
                    with suppress(OSError):
                        if os.readlink(entry / "ns/pid") == space:
                            fields = (entry / "stat").read_text().rpartition(")")[2].split()
                            words = (entry / "cmdline").read_bytes().split(b"\0")
                            found.append((int(entry.name), int(fields[1]), words))
            holders = [pid for pid, _, words in found if b"hold" in words and b"yurt.node.dev" in b" ".join(words)]
            below = [(pid, words[0].decode()) for pid, above, words in found if above in holders]
            return [*((pid, "holder") for pid in holders), *below]
        return []

    def versions(self) -> list[int]:
        """Return the versions that `dev backups` lists."""
        listed = self.data("dev", "backups", self.desk, "--context", self.name)["versions"]
        return [int(each["number"]) for each in listed]

    def _newest(self) -> int:
        newest = backup.newest(str(self.backups))
        return 0 if newest is None else int(newest.number)

    def check(self, label: str) -> int:
        """Check the workspace and all versions. Return how many generations are missing on the node."""
        least = self.least
        number, found = self.fingerprint()
        if number < least:
            self.violation(f"{label}: the workspace is of generation {number}; {least} was saved")
        if found != self.prints.get(number):
            self.violation(f"{label}: the workspace of generation {number} is not as it was")
        self.log(f"{label}: generation {number} of {self.generation}, saved {least}")
        self._check_versions(label)
        for path in self._foreign():
            if not path.exists() or path.read_text() != FOREIGN:
                self.violation(f"{label}: {path} was removed")
        left = [each.name for each in (self.root(self.node) / f"scratch/alice/.yurt-dev/{self.desk}").iterdir()]
        if half := [name for name in left if name.startswith("fresh-") or name.endswith(".restoring")]:
            self.violation(f"{label}: {half} is left on {self.node}")
        return self.generation - number

    def _check_versions(self, label: str) -> None:
        """Verify all listed versions; restore those that were not restored before, and compare every file."""
        listed = self.versions()
        missing = [number for number in self.saved if number not in listed and number > max(self.saved) - 8]
        if missing:
            self.violation(f"{label}: the versions {missing} were reported as complete, and are not listed")
        for number in listed:
            try:
                backup.verify(str(self.backups), number)
            except backup.BackupError as error:
                self.violation(f"{label}: v{number} is listed, but {error}")
        for number in sorted({*listed} - self.checked):
            copy = self.folder / f"copy-{self.name}"
            where = ["--at", f"v{number}", "--to", str(copy)]
            self.yurt("dev", "restore", "--name", self.desk, "--context", self.name, *where)
            if not copy.exists():
                self.violation(f"{label}: v{number} is listed and cannot be restored")
                continue
            argv = [sys.executable, "-c", PRINT, str(copy)]
            text = subprocess.run(argv, check=True, capture_output=True, text=True).stdout.strip()
            generation, _, found = text.partition(" ")
            if found != self.prints.get(int(generation)):
                self.violation(f"{label}: v{number} is generation {generation}, but not as it was")
            if self.saved.setdefault(number, int(generation)) != int(generation):
                self.violation(f"{label}: v{number} has generation {generation}, not {self.saved[number]}")
            self.checked.add(number)
            shutil.rmtree(copy)
        self.least = self.saved.get(self._newest(), 0)

    def until(self, reached: Callable[[], Any], seconds: float, *, pause: float = 0.2) -> bool:
        """Wait until something is true; return whether it is."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            with suppress(OSError):
                if reached():
                    return True
            time.sleep(pause)
        return False

    def until_over(self, job: str, seconds: float = 120) -> bool:
        """Wait until Slurm has ended a job."""
        return self.until(lambda: job not in self.as_root("squeue", "-h", "-t", "R", "-o", "%i").split(), seconds)
