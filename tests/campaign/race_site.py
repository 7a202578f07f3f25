"""The places of a campaign of races: two clusters, this machine, their ledgers, and the clients that submit."""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Collection
from functools import partial
from pathlib import Path

from tests.campaign.client import Client
from tests.campaign.race_judge import WORK, Copy, Item, Race, copies, leftovers
from tests.campaign.site import Site
from yurt.lab import Lab
from yurt.lab.relay import Rules
from yurt.model.run import FINAL
from yurt.store import Entry, Store

SITES = ("alpha", "beta")
HOME = "home/alice"
"""Where the ledgers are: not on the disk that a fault fills."""
CLOCKS = "silent=4 lease=12"
WAIT = "race_wait: 60s"


class Racer(Client):
    """A client with its own index. Races may be refused under faults, so exit code 5 is expected."""

    expected = (*Client.expected, 5)

    def start(self, *arguments: str, clocks: str = CLOCKS, program: bool = False) -> subprocess.Popen[bytes]:
        return super().start(*arguments, clocks=clocks, program=program)

    def race(self, label: str) -> Entry | None:
        """Return the newest race with this label."""
        return next((each for each in self.entries() if each.run.name == label), None)

    def candidates(self, race: str) -> list[Entry]:
        with self._store() as store:
            return store.several(store.candidates(race))

    def open(self) -> list[str]:
        """Return the races with something left to do, among them those that are not over."""
        if not (self.data / "yurt.db").exists():
            return []
        with self._store() as store:
            alive = [each.run.id for each in store.newest() if each.status.state not in FINAL]
            return sorted({*alive, *store.open_races()})

    def races(self) -> list[tuple[Entry, list[str], list[Item]]]:
        """Return all races of the index, with their candidates and items."""
        if not (self.data / "yurt.db").exists():
            return []
        found = []
        with self._store() as store:
            for entry in list(store.newest()):
                items = []
                for number in range(entry.run.tasks or 1):
                    one = store.get(f"{entry.run.id}.{number}") if entry.run.tasks else entry
                    assert one is not None
                    items.append(Item(number, one.status.state, one.status.reason, one.run.context, one.run.folder))
                found.append((entry, store.candidates(entry.run.id), items))
        return found

    def _store(self) -> Store:
        return Store(str(self.data / "yurt.db"))


class Places:
    """Both clusters, connected with each other, and this machine."""

    def __init__(self, lab: Lab, folder: Path, runtime: Path, log: Callable[[str], None], clients: int) -> None:
        self.lab, self.folder, self.log = lab, folder, log
        self.sites = {name: Site(lab, name, folder, runtime, log) for name in SITES}
        self.ledger = f"races-{os.urandom(3).hex()}"
        project = folder / "project"
        project.mkdir()
        config = folder / "config"
        shutil.copytree(os.environ["YURT_CONFIG_HOME"], config)
        _allow_races(config / "contexts.yaml")
        self.clients = [
            Racer(f"c{n}", data=folder / f"c{n}", runtime=runtime / f"c{n}", project=project, log=log)
            for n in range(clients)
        ]
        for client in self.clients:
            client.environment["YURT_CONFIG_HOME"] = str(config)
        self.submitted: set[str] = set()
        """Labels of plain races that were submitted, or refused."""
        self.foreign: set[str] = set()
        """Names of jobs that were there before: an earlier test of the same lab may have left them."""
        self.controllers = {name: threading.Lock() for name in SITES}
        """Locked while a fault stops the controller: commands of the campaign wait."""

    def prepare(self) -> None:
        """Connect the clusters, probe them, and create the ledgers."""
        self.lab.faults.link()
        for name, site in self.sites.items():
            self.foreign |= {row.split()[0] for row in _jobs(site)}
            path = self.ledger_on(name)
            path.write_text("")
            path.chmod(0o666)
            site.set_link_faults()
            self.clients[0].call("context", "probe", name)
        (self.folder / self.ledger).write_text("")

    def ledger_on(self, name: str) -> Path:
        return self.sites[name].steps.root / HOME / self.ledger

    def command(self, label: str, rest: float) -> list[str]:
        return ["sh", "-c", WORK, label, f"/{HOME}/{self.ledger}", str(self.folder / self.ledger), f"{rest * 1000:.0f}"]

    def copies(self) -> list[Copy]:
        """Return all starts, of all places."""
        ledgers = [*(self.ledger_on(name) for name in SITES), self.folder / self.ledger]
        return [each for path in ledgers for each in copies(path.read_text())]

    def winner(self, client: Racer, label: str, seconds: float = 30) -> tuple[str, str] | None:
        """Wait until the code of a race has started; return its context and the job's name. Tends the race."""
        deadline = time.monotonic() + seconds
        while client.race(label) and time.monotonic() < deadline:
            found = [each for each in self.copies() if each.label == label]
            if found:
                return found[-1].context, f"yurt-{found[-1].candidate}"
            client.once()
        return None

    def jobs(self, name: str, job_name: str) -> list[str]:
        """Return the ids of the jobs with a name in a queue."""
        with self.controllers[name]:
            rows = self.sites[name].on_ctl("squeue", "-h", "-o", "%j %A").splitlines()
        return [row.split()[1] for row in rows if row.split()[0] == job_name]

    def on_ctl(self, name: str, *argv: str) -> str:
        with self.controllers[name]:
            return self.sites[name].on_ctl(*argv)

    def mend(self) -> None:
        """Undo all faults."""
        self.lab.faults.link()
        for name, site in self.sites.items():
            self.lab.faults.free(f"{name}:scratch")
            self.lab.faults.heal(name)
            self.lab.faults.delay(name, Rules())
            site.resume_nodes()

    def close(self) -> None:
        for client in self.clients:
            client.disconnect()
        for name in SITES:
            self.lab.faults.heal(name)
            self.ledger_on(name).unlink()

    def left(self) -> list[str]:
        """Return what the races left on the clusters."""
        found = []
        for name, site in self.sites.items():
            jobs = site.left_of(partial(_jobs, site, self.foreign))
            keys = (site.steps.root / HOME / ".ssh" / "authorized_keys").read_text().splitlines()
            folders = sorted(each.name for each in (site.shared / "yurt" / "races").glob("*"))
            keys = [key for key in keys if " yurt-race-" in key]
            found += leftovers(name, jobs=jobs, keys=keys, folders=folders)
        return found


def _jobs(site: Site, but: Collection[str] = ()) -> list[str]:
    """Return the jobs of runs in the queue, with state and reason, without those of these names."""
    rows = site.on_ctl("squeue", "-h", "-o", "%j %i %T %r").splitlines()
    return [row for row in rows if row.startswith("yurt-") and row.split()[0] not in but]


def _allow_races(file: Path) -> None:
    """Let jobs of all contexts claim by ssh, and wait for an answer."""
    text = file.read_text()
    for name in SITES:
        line = f"    slurm_url: alice@{name}\n"
        assert line in text
        text = text.replace(line, f"{line}    race_address: alice@{name}\n    race_keys: true\n    {WAIT}\n")
    file.write_text(text)


def race_of(entry: Entry, candidates: list[str], items: list[Item], *, excused: str) -> Race:
    restarts = entry.run.restart_policy.max_requeues > 0
    if not candidates:
        excused = excused or "its client was killed before it had candidates"
    return Race(entry.run.id, entry.run.name, candidates, items, restarts, entry.run.restart_policy.retries, excused)
