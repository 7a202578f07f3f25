"""A cluster in a campaign: its ledger, its steps, its link faults, and the client that uses it."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.campaign.client import Client
from tests.campaign.ledger import WORK, Start, read
from tests.campaign.steps import Steps
from yurt.config import facts
from yurt.lab import Lab
from yurt.lab.cluster import inside
from yurt.lab.relay import Rules

SHARED = "lustre/scratch/alice"
BEGUN = "campaign-begun"
PROLOG = f'echo "$SLURM_JOB_NAME $SLURM_JOB_ID" >> /{SHARED}/{BEGUN}\n'
ROUNDS = 6


class Site:
    """A cluster of the lab and the user who submits to it. For use by one thread only."""

    def __init__(self, lab: Lab, name: str, folder: Path, runtime: Path, log: Callable[[str], None]) -> None:
        self.lab, self.name, self.cluster = lab, name, lab.cluster(name)
        self._log = log
        self.steps = Steps(self.cluster)
        self.ledger = f"ledger-{folder.name}"
        project = folder / f"project-{name}"
        project.mkdir(parents=True)
        (project / "work.sh").write_text(WORK)
        self.client = Client(name, data=folder / name, runtime=runtime / name, project=project, log=self.log)
        self.copies: list[Client] = []
        self.cancelled: set[str] = set()
        """Runs that the user cancelled."""
        self.cancelled_at: dict[str, float] = {}
        """Time at which the cancellation of each run had reached the site; its code must end soon after."""
        self.crashes: list[float] = []
        """Times at which the controller was killed."""
        self.cut_off = ""
        """The node whose link is down."""
        self.missed: list[str] = []
        """Episodes whose fault came too late to have an effect."""
        self.after: Callable[[], None] | None = None
        """Completes an episode that is still open."""
        self.over: Callable[[], bool] = lambda: True
        """Returns whether the open episode can be completed."""
        self.facts = b""
        self.up = self.down = self.greeting = 0

    @property
    def shared(self) -> Path:
        return self.steps.root / SHARED

    @property
    def clients(self) -> list[Client]:
        return [self.client, *self.copies]

    def log(self, text: str) -> None:
        self._log(f"{self.name} {text}")

    # Set-up

    def prepare(self) -> None:
        """Create the ledger, install steps and the relay, and record the site's facts."""
        for name in (self.ledger, BEGUN):
            (self.shared / name).write_text("")
            (self.shared / name).chmod(0o666)
        prolog = self.cluster.folder / "slurm" / "task_prolog.sh"
        if PROLOG not in prolog.read_text():
            prolog.write_text(prolog.read_text() + PROLOG)
        self.steps.install()
        self.set_link_faults()
        self.partition("UP")
        if not facts.file_of(self.name).exists():
            self.client.call("context", "probe", self.name)
        self.facts = facts.file_of(self.name).read_bytes()

    def measure(self) -> None:
        """Measure once, without faults, how many bytes a connection and a submission transfer."""
        if self.up:
            return
        self.submit("none", rest=0.2)
        self.client.disconnect()
        for command in (["true"], []):
            log = self._relay_log()
            log.unlink(missing_ok=True)
            if command:
                config = str(self.lab.instance.client / "ssh_config")
                subprocess.run(
                    ["ssh", "-F", config, self.name, *command],
                    stdin=subprocess.DEVNULL,
                    capture_output=True,
                    check=True,
                )
            else:
                self.submit("none", rest=0.2)
                self.client.disconnect()
            row = self._relay_rows(1)[-1]
            self.greeting = row["up"] if command else self.greeting
            self.up, self.down = row["up"], row["down"]
        self.log(f"connection: {self.greeting} bytes; submission: {self.up} bytes up, {self.down} down")

    def restore(self) -> None:
        """Undo all changes to the lab."""
        for client in self.clients:
            client.disconnect()
        self.steps.remove()
        prolog = self.cluster.folder / "slurm" / "task_prolog.sh"
        prolog.write_text(prolog.read_text().replace(PROLOG, ""))
        self.lab.faults.heal(self.name)

    # Actions of the user

    def command(self, *, rest: float, pace: str = "", snapshot: bool = False) -> list[str]:
        call = ["sh", "work.sh"] if snapshot else ["sh", "-c", WORK, "work"]
        return [*call, f"/{SHARED}/{self.ledger}", f"{rest:g}", pace]

    def arguments(self, label: str, *, rest: float, snapshot: bool = False) -> list[str]:
        how = [] if snapshot else ["--no-snapshot"]
        return ["run", "--context", self.name, "--name", label, *how, *self.command(rest=rest, snapshot=snapshot)]

    def submit(self, label: str, *, rest: float, snapshot: bool = False) -> str:
        return self.client.call(*self.arguments(label, rest=rest, snapshot=snapshot))

    def newest(self, label: str) -> str:
        """Return the id of the newest run of an episode; empty if there is none."""
        return next((each.run.id for each in self.client.entries() if each.run.name == label), "")

    def cancel(self, run: str) -> None:
        self.cancelled.add(run)
        self.client.call("cancel", run)

    def settle(self) -> None:
        """Remove all faults and run the agent until all pending runs are submitted, at most ROUNDS times."""
        self.set_link_faults()
        self.steps.disarm()
        self.resume_nodes()
        if not facts.file_of(
            self.name
        ).exists():  # after a refusal yurt would probe again; keep that out of the episodes
            facts.file_of(self.name).write_bytes(self.facts)
        for client in self.clients:
            for _round in range(ROUNDS):
                if not client.waiting():
                    break
                client.once()
        for run in self.cancelled - self.cancelled_at.keys() - set(self.client.waiting()):
            self.cancelled_at[run] = time.time()

    # Faults

    def set_link_faults(self, rules: Rules | None = None) -> None:
        """Set the link faults of new connections; none by default."""
        self._relay_log().unlink(missing_ok=True)
        self.lab.faults.delay(self.name, rules or Rules())

    def was_cut(self) -> bool:
        return any(row["cut"] for row in self._relay_rows(0))

    def _relay_log(self) -> Path:
        return self.lab.faults.rules_file(self.name).with_suffix(".log")

    def _relay_rows(self, wanted: int) -> list[dict[str, Any]]:
        """Return the relay's log rows of ended connections; wait for at least `wanted`."""
        deadline = time.monotonic() + 10
        while True:
            log = self._relay_log()
            rows = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
            if len(rows) >= wanted or time.monotonic() > deadline:
                return rows
            time.sleep(0.02)

    def on_ctl(self, *argv: str) -> str:
        done = subprocess.run(inside(self.cluster.pid("ctl"), [*argv]), capture_output=True, text=True, check=False)
        return done.stdout.strip()

    def start_ctld(self) -> None:
        """Start the controller and wait until it responds. Does not wait for a disconnected node."""
        self.cluster.service("ctl", "ctld", "start")
        assert self.until(lambda: "unknown" not in self.cluster.node_states().values(), 60)

    def partition(self, state: str) -> None:
        """Set the state of the partition. It accepts jobs in any state and starts them only if UP."""
        self.on_ctl("scontrol", "update", "partitionname=main", f"state={state}")

    def resume_nodes(self) -> None:
        """Resume drained nodes: after a crash Slurm may start a job id twice, and then drains the node."""
        for node, state in self.cluster.node_states().items():
            if state.startswith(("drain", "drng", "down")) and node != self.cut_off:
                self.on_ctl("scontrol", "update", f"nodename={node}", "state=resume")

    def register_nodes(self) -> None:
        """Let the nodes register. Slurm then ends jobs that they do not have, 10 s after the controller has started.

        `scontrol reconfigure` does the same before Slurm 26.05; since then, the controller starts again.
        """
        for node in self.cluster.node_states():
            self.signal_in(node, "slurmd", signal.SIGHUP)

    def signal_in(self, host: str, name: str, number: signal.Signals) -> int:
        """Signal the processes of that name on a host; return their number."""
        found = processes_in(self.cluster.pid(host), name)
        for pid in found:
            with suppress(ProcessLookupError):
                os.kill(pid, number)
        return len(found)

    def set_node_link(self, node: str, *, up: bool) -> None:
        """Take a node's link to its cluster's switch up or down."""
        argv = ["nsenter", "--net", "-t", str(self.cluster.pid("fabric"))]
        subprocess.run([*argv, "ip", "link", "set", f"to-{node}", "up" if up else "down"], check=True)
        self.cut_off = "" if up else node

    # Results

    def starts(self) -> list[Start]:
        return read((self.shared / self.ledger).read_text())

    def begun(self) -> list[str]:
        """Return the run of each job that Slurm started, once per start."""
        lines = (self.shared / BEGUN).read_text().splitlines()
        return [line.split()[0].removeprefix("yurt-") for line in lines]

    def passed(self, folder: str) -> int:
        """Return how many starts of a run passed the gate."""
        return len(
            [
                path
                for path in self.steps.root.joinpath(folder[1:]).glob("gen.*")
                if re.fullmatch(r"gen\.\d+(\.d)?", path.name)
            ]
        )

    def queue(self) -> list[str]:
        """Return jobs of this campaign that are still in the queue, with state and reason."""
        rows = self.on_ctl("squeue", "-h", "-o", "%j %i %T %r").splitlines()
        own = {f"yurt-{entry.run.id}" for client in self.clients for entry in client.entries()}
        return [row for row in rows if row.split()[0] in own]

    def drained(self) -> list[str]:
        """Wait until the queue is empty; return the jobs that are left. Duplicate jobs exit at the gate."""
        return self.left_of(self.queue)

    def left_of(self, jobs: Callable[[], list[str]]) -> list[str]:
        """Wait until there are no jobs; return those that are left.

        After a crash the controller lists finished jobs until their nodes register.
        """
        for _try in range(6):
            if self.until(lambda: not jobs(), 12, pause=0.5):
                break
            self.register_nodes()
        return jobs()

    def until(self, condition: Callable[[], object], seconds: float, pause: float = 0.1) -> bool:
        """Wait until a condition is true; return False after `seconds`."""
        deadline = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > deadline:
                return False
            time.sleep(pause)
        return True


def processes_in(host: int, name: str) -> list[int]:
    """Return the processes of that name in the pid namespace of a host's first process.

    Debian's slurmctld is a link to slurmctld-wlm, which is its name after a reconfiguration.
    """
    space = os.readlink(f"/proc/{host}/ns/pid")
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                if (entry / "comm").read_text().strip().removesuffix("-wlm") == name and os.readlink(
                    entry / "ns" / "pid"
                ) == space:
                    found.append(int(entry.name))
    return found
