"""`python -m tests.campaign.chains`: runs of several starts under random faults. Exits with 1 on a violation.

Each run counts, saves checkpoints, and receives the signal before its time limit 15 seconds after each start. Its
ledger must show: no two starts at the same time, no missing step, no saved step repeated. All runs must finish.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from random import Random

import msgspec

from tests.campaign.campaign import writer
from tests.campaign.driver import Stage, arguments, drive
from tests.campaign.site import Site
from yurt.lab import Lab
from yurt.lab.cluster import inside
from yurt.model.run import Status

COUNT = """\
import os, signal, sys, time

many, every, on_signal = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3] == "yes"
saved = os.path.join(os.environ["YURT_CHECKPOINTS"], "step")
ledger = os.path.join(os.environ["YURT_OUTPUTS"], "ledger")
step = int(open(saved).read()) if os.path.exists(saved) else 0
asked = []
if on_signal:
    for number in (signal.SIGUSR1, signal.SIGTERM):
        signal.signal(number, lambda *_: asked.append(1))


def say(word, number):
    line = "%s %d %s %s %.3f\\n" % (word, number, os.environ["YURT_RESTARTS"], os.uname().nodename, time.time())
    file = os.open(ledger, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(file, line.encode())
    os.close(file)


def save():
    with open(saved + ".new", "w") as file:
        file.write(str(step))
        file.flush()
        os.fsync(file.fileno())
    os.rename(saved + ".new", saved)
    say("saved", step)


say("begin", step)
while step < many:
    time.sleep(0.7)
    step += 1
    say("step", step)
    if every and step % every == 0:
        save()
    if asked and step < many:
        save()
        say("end", step)
        sys.exit(85)
save()
say("end", step)
"""
"""The script of a run. Arguments: number of steps, save every N steps, save on the signal (yes or no), label."""

WIDTH = 6
"""Number of concurrent runs per cluster."""

MOST_STARTS = 14


class Line(msgspec.Struct, frozen=True):
    """One line of a ledger."""

    word: str
    step: int
    start: int
    node: str
    at: float


class Chain(msgspec.Struct, frozen=True):
    """A run, its fault, and the step at which the fault is injected."""

    number: int
    cluster: str
    fault: str
    steps: int
    every: int
    on_signal: bool
    at_step: int
    seconds: float
    """Duration of a fault that lasts for some time."""

    @property
    def label(self) -> str:
        return f"{self.fault}-{self.number}"


class ChainRun:
    """A submitted chain."""

    def __init__(self, chain: Chain, run: str, folder: Path) -> None:
        self.chain, self.run, self.folder = chain, run, folder
        self.injected = False
        self.cancelled = False

    def ledger(self) -> list[Line]:
        try:
            return read((self.folder / "outputs" / "ledger").read_text())
        except OSError:
            return []

    def node(self) -> str:
        return self.ledger()[-1].node


def read(text: str) -> list[Line]:
    rows = (line.split() for line in text.splitlines())
    return [Line(word, int(step), int(start), node, float(at)) for word, step, start, node, at in rows]


def violations(chain: Chain, lines: Sequence[Line], status: Status, *, cancelled: bool = False) -> list[str]:
    """Return all violations, one sentence each. Pure."""
    found = []
    ends: dict[int, float] = {}
    saved = last = 0
    for line in lines:
        if line.word == "begin":
            if line.start in ends:
                found.append(f"start {line.start} happened twice")
            if not saved <= line.step <= last:
                found.append(f"start {line.start} began at step {line.step}; step {saved} was saved, {last} reached")
            last = line.step
        if any(at > line.at for start, at in ends.items() if start != line.start) or line.start < max(ends, default=0):
            found.append(f"start {line.start} ran at the same time as another: {line}")
        if line.word == "step":
            if line.step != last + 1:
                found.append(f"step {line.step} follows step {last}")
            last = line.step
        elif line.word == "saved":
            saved = max(saved, line.step)
        ends[line.start] = line.at
    if not status.final:
        found.append(f"it is stranded as {status.state} ({status.reason})")
    elif status.state != "completed" and not (cancelled and status.state == "cancelled"):
        found.append(f"its final state is {status.state} ({status.reason})")
    elif status.state == "completed" and saved != chain.steps:
        found.append(f"its state is completed, but it saved {saved} of {chain.steps} steps")
    if len(ends) > MOST_STARTS or status.restarts >= MOST_STARTS:
        found.append(f"it was started {max(len(ends), status.restarts + 1)} times")
    return [f"{chain.cluster} {chain.label}: {text}" for text in dict.fromkeys(found)]


# The faults


def _kill(site: Site, target: ChainRun, *, job: bool, command: bool) -> None:
    hosts = {os.readlink(f"/proc/{pid}/ns/pid") for pid in site.cluster.pids().values()}
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if os.readlink(folder / "ns" / "pid") not in hosts:
                continue
            arguments = (folder / "cmdline").read_bytes().split(b"\0")
            own = (b"slurm_script" in b" ".join(arguments) and target.run in os.readlink(folder / "cwd")) or any(
                f"{target.run}/job.sh".encode() in word for word in arguments
            )
            if (job and own) or (command and b"count.py" in arguments and target.chain.label.encode() in arguments):
                os.kill(int(folder.name), signal.SIGKILL)


def _stop_controller(site: Site, target: ChainRun) -> None:
    site.cluster.service("ctl", "ctld", "stop")
    time.sleep(target.chain.seconds)
    site.start_ctld()


def _kill_controller(site: Site, target: ChainRun) -> None:
    site.cluster.service("ctl", "ctld", "kill")
    time.sleep(target.chain.seconds / 4)
    site.start_ctld()


def _kill_client(site: Site, target: ChainRun) -> None:
    """Run two refreshes at the same time and kill one of them."""
    both = [site.client.start("agent", "once") for _each in range(2)]
    time.sleep(target.chain.seconds / 30)
    both[0].kill()
    for each in both:
        site.client.end(each)


def _jobs(site: Site, target: ChainRun, *states: str) -> list[str]:
    rows = site.on_ctl("squeue", "-h", "-n", f"yurt-{target.run}", "-o", "%i %T").splitlines()
    return [row.split()[0] for row in rows if row.split()[1] in states]


def _requeue(site: Site, target: ChainRun) -> None:
    for job in _jobs(site, target, "RUNNING"):
        site.on_ctl("scontrol", "requeue", job)


def _suspend(site: Site, target: ChainRun) -> None:
    jobs = _jobs(site, target, "RUNNING")
    for job in jobs:
        site.on_ctl("scontrol", "suspend", job)
    time.sleep(target.chain.seconds * 2)
    for job in jobs:
        site.on_ctl("scontrol", "resume", job)


def _shorten(site: Site, target: ChainRun) -> None:
    for job in _jobs(site, target, "RUNNING"):
        site.on_ctl("scontrol", "update", f"jobid={job}", "timelimit=1")


def _cancel_next(site: Site, target: ChainRun) -> None:
    """Cancel the pending job of the next start; if the same job is requeued, this cancels the run."""
    if site.until(lambda: _jobs(site, target, "PENDING"), 40, pause=0.02):
        for job in _jobs(site, target, "PENDING"):
            site.on_ctl("scancel", job)
            target.cancelled = True


def _power_off_node(site: Site, target: ChainRun) -> None:
    node = target.node()
    site.lab.faults.kill_node(f"{site.name}:{node}")
    site.cut_off = node
    time.sleep(target.chain.seconds)
    site.lab.faults.start_node(f"{site.name}:{node}")
    site.cut_off = ""


def _preempt(site: Site, target: ChainRun) -> None:
    options = ["-p", "main", "-w", target.node(), "--exclusive", "--mem=0", "-t", "1", "-o", "/dev/null"]
    argv = ["runuser", "-u", "alice", "--", "sbatch", "--chdir=/tmp", *options, "--wrap", "sleep 3"]
    subprocess.run(inside(site.cluster.pid(site.cluster.spec.login.name), argv), capture_output=True, check=False)


class Fault(msgspec.Struct, frozen=True):
    """A kind of fault: the clusters it works on, extra options of the run, and a factor for the run's length."""

    inject: Callable[[Site, ChainRun], None]
    clusters: tuple[str, ...] = ("alpha", "beta")
    flags: tuple[str, ...] = ()
    length: int = 1


FAULTS = {
    "job": Fault(lambda site, target: _kill(site, target, job=True, command=False)),
    "command": Fault(
        lambda site, target: _kill(site, target, job=False, command=True), flags=("--retries", "2", "--retry-errors")
    ),
    "both": Fault(lambda site, target: _kill(site, target, job=True, command=True)),
    "silence": Fault(_stop_controller),
    "crash": Fault(_kill_controller),
    "client": Fault(_kill_client),
    "requeue": Fault(_requeue, ("alpha",)),
    "suspend": Fault(_suspend),
    "shorten": Fault(_shorten, flags=("--time", "3"), length=4),
    "next": Fault(_cancel_next),
    "node": Fault(_power_off_node, flags=("--retries", "2")),
    "spot": Fault(_preempt, ("alpha",), ("-p", "spot")),
    "scavenge": Fault(_preempt, ("alpha",), ("-p", "scavenge")),
}


def draw(seed: int, runs: int, only: Sequence[str] = ()) -> list[Chain]:
    """Return the chains of a seed. `only` selects faults and does not change their chains."""
    made = []
    names = list(FAULTS)
    Random(seed).shuffle(names)
    for number in range(runs):
        name = names[number % len(names)]
        random = Random(f"{seed}/{number}")
        on_signal = random.random() < 0.5
        made.append(
            Chain(
                number=number,
                cluster=random.choice(FAULTS[name].clusters),
                fault=name,
                steps=random.randint(30, 45) * FAULTS[name].length,
                every=random.choice([0, 3]) if on_signal else random.choice([2, 4]),
                on_signal=on_signal,
                at_step=random.randint(2, 28),
                seconds=round(random.uniform(15, 25), 1),
            )
        )
    return [chain for chain in made if not only or chain.fault in only]


class Chains:
    """Runs chains on one cluster, a few at a time, and refreshes their state regularly."""

    def __init__(self, site: Site, patience: float) -> None:
        self.site, self.patience = site, patience
        self.submitted: list[ChainRun] = []
        self.broken: list[str] = []

    def run(self, chains: Sequence[Chain]) -> list[str]:
        site = self.site
        (site.client.project / "count.py").write_text(COUNT)
        site.client.call("context", "probe", site.name)
        waiting, deadline = list(chains), time.monotonic() + self.patience
        while (waiting or self.open()) and time.monotonic() < deadline:
            if waiting and len(self.open()) < WIDTH:
                self.begin(waiting.pop(0))
                continue
            site.client.once()
            site.resume_nodes()
            for each in self.submitted:
                steps = [line.step for line in each.ledger() if line.word == "step"]
                if not each.injected and len(steps) >= each.chain.at_step and each in self.open():
                    self.inject(each)
            time.sleep(1)
        found = [*self.broken, *(f"{site.name} {chain.label}: never submitted" for chain in waiting)]
        for each in self.submitted:
            lines, status = each.ledger(), self.status(each)
            site.log(f"{each.chain.label} {each.run}: {status.state} ({status.reason}) {status.restarts}")
            site.log("\n".join(f"  {line.word} {line.step} {line.start} {line.node} {line.at}" for line in lines))
            found += violations(each.chain, lines, status, cancelled=each.cancelled)
            if not each.injected:
                site.missed.append(each.chain.label)
        return found + [f"{site.name}: left in the queue: {row}" for row in site.drained()]

    def begin(self, chain: Chain) -> None:
        arguments = ["--requeue", "--time", "1", "--signal-before", "45s", *FAULTS[chain.fault].flags, "count.py"]
        arguments += [str(chain.steps), str(chain.every), "yes" if chain.on_signal else "no", chain.label]
        self.site.log(f"{chain.label}: {msgspec.json.encode(chain).decode()}")
        self.site.client.call("run", "--context", self.site.name, "--name", chain.label, *arguments)
        entry = next(each for each in self.site.client.entries() if each.run.name == chain.label)
        folder = self.site.steps.root.joinpath(entry.run.folder[1:])
        self.submitted.append(ChainRun(chain, entry.run.id, folder))

    def inject(self, target: ChainRun) -> None:
        target.injected = True
        self.site.log(f"{target.chain.label}: injecting the fault")
        try:
            FAULTS[target.chain.fault].inject(self.site, target)
        except Exception:
            self.site.log(traceback.format_exc())
            self.broken.append(f"{self.site.name} {target.chain.label}: the campaign itself failed, see the log")

    def status(self, target: ChainRun) -> Status:
        return next(each.status for each in self.site.client.entries() if each.run.id == target.run)

    def open(self) -> list[ChainRun]:
        final = {each.run.id for each in self.site.client.entries() if each.status.final}
        return [each for each in self.submitted if each.run not in final]


def campaign(lab: Lab, folder: Path, runtime: Path, chains: Sequence[Chain], patience: float) -> tuple[list[str], int]:
    """Return the violations and the number of faults that came too late."""
    names = sorted({chain.cluster for chain in chains})
    with (folder / "log").open("w") as log:
        write = writer(log)

        def on_one(name: str) -> tuple[list[str], int]:
            site = Site(lab, name, folder, runtime, write)
            try:
                found = Chains(site, patience).run([each for each in chains if each.cluster == name])
                return found + site.client.wrong, len(site.missed)
            finally:
                site.client.disconnect()

        with ThreadPoolExecutor(len(names)) as pool:
            found = list(pool.map(on_one, names))
    return [text for wrong, _missed in found for text in wrong], sum(missed for _wrong, missed in found)


def main() -> int:
    asked = arguments("chains", __doc__, runs=26, faults=list(FAULTS), timeout=1200)
    chains = draw(asked.seed, asked.runs, asked.only)

    def play(stage: Stage) -> bool:
        wrong, missed = campaign(stage.lab, stage.work, stage.runtime, chains, asked.timeout)
        print("\n".join([*wrong, f"{len(wrong)} violations; {missed} faults came too late to have an effect"]))
        return not wrong

    return drive("chains", asked, f"{len(chains)} runs of several starts", play)


if __name__ == "__main__":
    sys.exit(main())
