"""`python -m tests.campaign.features`: what stands on submission, under random faults. Exits with 1 on a violation.

Runs that wait for others, retries, calls of an executor, the agent, environment builds, a disk without inodes, and two
versions of yurt on one site. What yurt says at the end is compared with a ledger that the code of the runs writes to
the home folder of the site, and on alpha with Slurm's accounting.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
import traceback
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random

import msgspec

from tests.campaign.campaign import writer
from tests.campaign.client import ROOT, YURT, Client
from tests.campaign.driver import Stage, arguments, drive
from tests.campaign.moments import Draw, arm, moment, reach
from tests.campaign.site import Site
from tests.wheels import download
from yurt.lab import Lab
from yurt.lab.cluster import inside
from yurt.lab.relay import Rules
from yurt.store import Entry

HOME = "home/alice"

CODE = """\
say() { echo "$1 $YURT_RUN_ID $YURT_RESTARTS $(hostname) $(date +%s.%N)" >> "$ledger"; }
ledger=$1 rest=$2 failures=$3
say start
sleep "$rest"
[ "$YURT_RESTARTS" -ge "$failures" ] || { say failed; exit 3; }
say end
"""
"""The user's code. Arguments: the ledger, its seconds, how many of its starts fail."""

CALLS = """\
import os, sys, time
import yurt

def square(ledger, n, rest):
    with open(ledger, "a") as file:
        file.write(f"start call-{n} 0 {os.uname().nodename} {time.time()}\\n")
    time.sleep(rest)
    with open(ledger, "a") as file:
        file.write(f"end call-{n} 0 {os.uname().nodename} {time.time()}\\n")
    return n * n

context, ledger, first, many = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
with yurt.executor(context, time="5m", env="none") as executor:
    futures = [executor.submit(square, ledger, first + n, 0.5) for n in range(many)]
    for n, future in enumerate(futures):
        assert future.result() == (first + n) ** 2
print("right")
"""

IMPORTS = "import six, sys\nassert six.__version__ == '1.17.0' and '/envs/' in sys.prefix, sys.prefix\n"


FILL = """\
cd "$1" && i=0 && while : > "fill.$i"; do i=$((i + 1)); done 2> /dev/null
ls | grep '^fill' | tail -n "$2" | xargs rm -f
"""
"""Takes all inodes of a folder's disk but some."""


class Row(msgspec.Struct, frozen=True):
    """One line of the ledger."""

    word: str
    run: str
    restart: int
    at: float


class Episode(msgspec.Struct, frozen=True):
    cluster: str
    kind: str
    number: int
    draw: Draw

    @property
    def label(self) -> str:
        return f"{self.kind}-{self.number}"


def draw(seed: int, runs: int, only: Sequence[str] = ()) -> list[Episode]:
    """Return the episodes of a seed. `only` selects kinds and does not change their episodes."""
    made = []
    for number in range(runs):
        random, kind = Random(f"{seed}/{number}"), list(KINDS)[number % len(KINDS)]
        drawn = {"fault": random.choice(["client", "ssh", "shell", "cut", "none"]), **moment(random)}
        drawn |= {"byte": random.randint(2_000, 30_000), "direction": random.choice(["up", "down"])}
        drawn |= {"rest": round(random.uniform(0.2, 4), 1), "failures": random.choice([0, 0, 1, 2, 3])}
        drawn |= {"pause": round(random.uniform(0, 6), 2), "coin": random.random() < 0.5, "left": random.randint(0, 90)}
        cluster = "alpha" if kind in ON_ALPHA else random.choice(["alpha", "beta"])
        made.append(Episode(cluster, kind, number, drawn))
    return [each for each in made if not only or each.kind in only]


class Place:
    """A cluster, with the ledger of this campaign."""

    def __init__(self, site: Site) -> None:
        self.site, self.client = site, site.client
        self.file = site.steps.root / HOME / f"features-{os.urandom(3).hex()}"
        self.ledger = f"/{HOME}/{self.file.name}"
        self.wrong: list[str] = []
        self.judged = 0

    def command(self, rest: float, failures: int = 0) -> list[str]:
        return ["sh", "-c", CODE, "work", self.ledger, f"{rest:g}", str(failures)]

    def words(self, label: str, *options: str) -> list[str]:
        return ["run", "--context", self.site.name, "--no-snapshot", "--env", "none", "--name", label, *options]

    def rows(self) -> dict[str, list[Row]]:
        """Return the lines of the ledger by run, or by call."""
        found: dict[str, list[Row]] = defaultdict(list)
        for line in self.file.read_text().splitlines():
            word, run, restart, _host, at = line.split()
            found[run].append(Row(word, run, int(restart), float(at)))
        return found

    def saved(self, label: str) -> list[Entry]:
        """Return the runs of an episode, the oldest first."""
        return [each for each in reversed(self.client.entries()) if each.run.name == label]

    def submit(self, episode: Episode, words: Sequence[str], label: str = "") -> Entry:
        """Submit with the fault of the episode; again, as a user does, if nothing was saved. Return the run."""
        label = label or episode.label
        for faulted in (True, False, False):
            with self.disturbed(episode, faulted) as started:
                started.append(self.client.start(*words))
            if found := self.saved(label):
                return found[-1]
        raise AssertionError(f"{label} was never saved")

    @contextmanager
    def disturbed(self, episode: Episode, faulted: bool = True) -> Iterator[list[subprocess.Popen[bytes]]]:
        """Inject the fault of an episode into the command that is started meanwhile, and mend it afterwards."""
        site, drawn = self.site, episode.draw
        fault = drawn["fault"] if faulted else "none"
        if fault in ("client", "ssh"):
            arm(site, drawn)
        elif fault == "shell":
            site.steps.arm(drawn.get("step", 3), drawn.get("when", "after"), "all")
        elif fault == "cut":
            self.client.disconnect()
            site.set_link_faults(Rules(cut_at=drawn["byte"], direction=drawn["direction"], connections=1))
        started: list[subprocess.Popen[bytes]] = []
        yield started
        (process,) = started
        if fault in ("client", "ssh"):
            reach(site, episode.label, process, drawn)
            if fault == "client":
                process.kill()
            else:
                self.client.kill_ssh("master", "session")
        site.steps.release()
        self.client.end(process)
        site.settle()

    def finished(self, entry: Entry, seconds: float = 150) -> Entry:
        """Wait until a run has finished; return it as the index has it."""
        deadline = time.monotonic() + seconds
        while True:
            now = next(each for each in self.client.entries() if each.run.id == entry.run.id)
            if now.status.final or time.monotonic() > deadline:
                return now
            self.site.resume_nodes()
            self.client.once()
            time.sleep(0.3)

    def agent_pid(self) -> int:
        """Return the process of the agent; 0 if it does not run."""
        asked = [YURT, "agent", "status", "--json"]  # exit code 1: it does not run
        said = subprocess.run(asked, env=self.client.environment, stdout=subprocess.PIPE, check=False).stdout
        found = json.loads(said)["data"]
        return int(found["state"]["pid"]) if found["running"] else 0

    def judge(self, entry: Entry, *, failures: int = 0, starts: int = 1, cancelled: bool = False) -> None:
        """Compare what yurt says of a run with the ledger and with Slurm."""
        self.judged += 1
        entry = self.finished(entry)
        run, status = entry.run, entry.status
        rows = self.rows()[run.id]
        begun = [each.restart for each in rows if each.word == "start"]
        expected = "completed" if failures < starts else "failed"
        said = f"{run.name} {run.id}: {status.state} ({status.reason})"
        if len(set(begun)) < len(begun) or len(begun) > starts:
            self.wrong.append(f"{said}, but its starts were {begun} of at most {starts}")
        if status.state == "completed" and [each.word for each in rows][-1:] != ["end"]:
            self.wrong.append(f"{said}, but its code did not end")
        if status.state != expected and not (cancelled and status.state == "cancelled"):
            self.wrong.append(f"{said}, but it should be {expected}; the ledger has {[each.word for each in rows]}")
        elif not cancelled and len(begun) != min(failures + 1, starts):
            self.wrong.append(f"{said}, but it was started {len(begun)} times")
        if self.site.name == "alpha" and status.state == "completed":
            states = self.site.on_ctl("sacct", "-nXP", f"--name=yurt-{run.id}", "-o", "State").split()
            if states and "COMPLETED" not in states:  # accounting may be late
                self.wrong.append(f"{said}, but Slurm says {states}")


# The kinds of episodes


def after(place: Place, episode: Episode) -> None:
    """A run after another one, which completes or fails, or is cancelled."""
    fails, drawn = episode.draw["failures"] > 1, episode.draw
    first = place.submit(episode, [*place.words(episode.label), *place.command(drawn["rest"], int(fails))])
    how = "--after" if drawn["coin"] else "--after-any"
    label = f"{episode.label}b"
    words = [*place.words(label, how, first.run.id), *place.command(0.2)]
    second = place.submit(episode, words, label)
    place.judge(first, failures=int(fails))
    never = fails and how == "--after"
    place.judge(second, cancelled=never)
    rows = place.rows()
    begun = [each.at for each in rows[second.run.id] if each.word == "start"]
    if never and begun:
        place.wrong.append(f"{label}: it was started although the run before it failed")
    if begun and begun[0] < max(each.at for each in rows[first.run.id]):
        place.wrong.append(f"{label}: it was started before the end of the run before it")


def retries(place: Place, episode: Episode) -> None:
    """A command that fails some times, while clients and links are killed."""
    failures = episode.draw["failures"]
    words = [*place.words(episode.label, "--retries", "2", "--retry-errors"), *place.command(0.3, failures)]
    entry = place.submit(episode, words)
    for _each in range(2):
        with place.disturbed(episode) as started:
            started.append(place.client.start("agent", "once"))
    place.judge(entry, failures=failures, starts=3)


def calls(place: Place, episode: Episode) -> None:
    """Calls of an executor; the process, or its connections, are killed."""
    first, many, site = episode.number * 100, 5, place.site
    script = place.client.project / "calls.py"
    script.write_text(CALLS)
    words = [sys.executable, str(script), site.name, place.ledger, str(first), str(many)]
    output = place.client.data.with_name(f"{episode.label}.out")
    with output.open("wb") as file:
        environment = {**place.client.environment, "YURT_CLOCKS": "rest=0"}
        process = subprocess.Popen(
            words, cwd=place.client.project, env=environment, stdin=subprocess.DEVNULL, stdout=file, stderr=file
        )
    time.sleep(episode.draw["pause"])
    killed = episode.draw["coin"]
    if killed:
        process.kill()
    else:
        place.client.kill_ssh("master", "session")
    try:
        code = process.wait(timeout=150)
    except subprocess.TimeoutExpired:
        process.kill()
        code = process.wait()
        place.wrong.append(f"{episode.label}: the calls did not end")
    site.settle()
    for entry in place.client.entries():
        if not entry.status.final:
            place.finished(entry)
    place.judged += many
    words_of = {n: [row.word for row in place.rows()[f"call-{first + n}"]] for n in range(many)}
    if any(each.count("start") > 1 for each in words_of.values()):
        place.wrong.append(f"{episode.label}: a call was executed twice: {words_of}")
    if not killed and (code or any(each != ["start", "end"] for each in words_of.values())):
        text = " ".join(output.read_text(errors="replace").split())[-300:]
        place.wrong.append(f"{episode.label}: exit code {code}, {words_of}: {text}")


def agent(place: Place, episode: Episode) -> None:
    """Saved runs that the agent submits, while it is killed again and again."""
    site, drawn = place.site, episode.draw
    labels = [f"{episode.label}{letter}" for letter in "abc"]
    place.client.disconnect()
    site.set_link_faults(Rules(cut_at=0))
    for label in labels:
        place.client.call(*place.words(label), *place.command(0.3))
    site.set_link_faults()
    for _each in range(3):
        place.client.call("agent", "start")
        time.sleep(drawn["pause"] / 6)
        pid = place.agent_pid()
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL if drawn["coin"] else signal.SIGTERM)
        assert site.until(lambda: not place.agent_pid(), 20)
    site.settle()
    for label in labels:
        for entry in place.saved(label):
            place.judge(entry)


def environment(place: Place, episode: Episode) -> None:
    """Runs of a project whose environment is being built, while builders and clients are killed."""
    site = place.site
    project = place.client.project
    (project / "train.py").write_text(IMPORTS)
    words = ["run", "--context", site.name, "--name", episode.label, "train.py"]
    (project / "requirements.txt").write_text(f"six==1.17.0\n{'' if episode.draw['coin'] else 'idna==3.10'}\n")
    subprocess.run(
        inside(site.cluster.pid(site.cluster.spec.login.name), ["sh", "-c", "chmod -R u+w /$0; rm -rf /$0", ENVS]),
        capture_output=True,
        check=False,
    )
    entry = place.submit(episode, words)
    if episode.draw["failures"]:
        time.sleep(episode.draw["pause"] / 4)
        kill = "pkill -KILL -f 'build[.][0-9a-f]*[.]sh'"
        subprocess.run(inside(site.cluster.pid(site.cluster.spec.login.name), ["sh", "-c", kill]), check=False)
    place.judged += 1
    entry = place.finished(entry, 240)
    if entry.status.state != "completed":
        place.wrong.append(f"{episode.label}: {entry.status.state} ({entry.status.reason})")


def inodes(place: Place, episode: Episode) -> None:
    """A disk whose last inodes are taken by a submission; afterwards there are some again."""
    site = place.site
    target = f"{site.name}:scratch"
    site.lab.faults.limit(target, files=2_000)
    try:
        folder = f"/{'/'.join(site.shared.parts[-3:])}"
        host = site.cluster.pid(site.cluster.spec.login.name)
        alice = ["runuser", "-u", "alice", "--"]
        subprocess.run(inside(host, [*alice, "sh", "-c", FILL, "sh", folder, str(episode.draw["left"])]), check=False)
        allowed, place.client.expected = place.client.expected, (*Client.expected, 1, 5)
        process = place.client.start(*place.words(episode.label), *place.command(episode.draw["rest"]))
        said = place.client.end(process)
        place.client.expected = allowed
        subprocess.run(inside(host, [*alice, "sh", "-c", 'rm -f "$1"/fill.*', "sh", folder]), check=False)
        site.settle()
        for entry in place.saved(episode.label):
            now = place.finished(entry)
            rows = [row.word for row in place.rows()[entry.run.id]]
            place.judged += 1
            if not now.status.final or rows.count("start") > 1 or (now.status.state == "completed") != ("end" in rows):
                place.wrong.append(f"{episode.label}: {now.status.state} ({now.status.reason}), the ledger has {rows}")
        if not place.saved(episode.label):
            place.judged += 1
        if not place.saved(episode.label) and "cannot submit" not in said:
            place.wrong.append(f"{episode.label}: yurt said {said}, but no run is saved")
    finally:
        site.lab.faults.unlimit(target)


def versions(place: Place, episode: Episode) -> None:
    """Two versions of yurt with an index each use the same site at the same time."""
    other = place.client.copy(f"{place.site.name}-{episode.label}")
    source = other.data.with_name("other-yurt")
    if not source.exists():
        shutil.copytree(ROOT / "src", source, ignore=shutil.ignore_patterns("__pycache__"))
        for script in source.rglob("*.sh"):
            lines = script.read_text().splitlines(keepends=True)
            script.write_text("".join([*lines, "# another version\n"]))
        for module in (source / "yurt" / "node").rglob("*.py"):
            module.write_text(module.read_text() + "# another version\n")
    other.environment["PYTHONPATH"] = f"{source}:{ROOT}"
    place.site.copies.append(other)
    words = [*place.words(episode.label), *place.command(episode.draw["rest"])]
    with place.disturbed(episode) as started:
        started.append(place.client.start(*words))
        second = other.start(*place.words(f"{episode.label}o"), *place.command(0.3))
        crossed = other.start("agent", "once")
    other.end(second)
    other.end(crossed)
    for label, client in ((episode.label, place.client), (f"{episode.label}o", other)):
        place.client, mine = client, place.client
        try:
            entries = place.saved(label) or [place.submit(episode, [*place.words(label), *place.command(0.2)], label)]
            for entry in entries:
                place.judge(entry)
        finally:
            place.client = mine
    place.site.copies.remove(other)
    other.disconnect()
    place.wrong += other.wrong


ENVS = "lustre/scratch/alice/yurt/envs"

KINDS: dict[str, Callable[[Place, Episode], None]] = {
    "after": after,
    "retries": retries,
    "calls": calls,
    "agent": agent,
    "environment": environment,
    "inodes": inodes,
    "versions": versions,
}

ON_ALPHA = ("calls", "environment", "inodes")
"""alpha has a package index and the Python of this machine."""


def campaign(lab: Lab, folder: Path, runtime: Path, episodes: Sequence[Episode]) -> tuple[list[str], Counter[str]]:
    """Return the violations, and how many runs and calls were judged, by kind."""
    lab.index.add([*download("six==1.17.0", "3.11"), *download("idna==3.10", "3.11")])
    judged: Counter[str] = Counter()
    with (folder / "log").open("w") as log:
        write = writer(log)

        def on_one(name: str) -> list[str]:
            site = Site(lab, name, folder, runtime, write)
            place = Place(site)
            place.file.write_text("")
            place.file.chmod(0o666)
            site.prepare()
            site.client.call("context", "probe", name)
            try:
                for episode in (each for each in episodes if each.cluster == name):
                    site.log(f"{episode.label}: {msgspec.json.encode(episode.draw).decode()}")
                    before = place.judged
                    try:
                        KINDS[episode.kind](place, episode)
                    except Exception:
                        site.log(traceback.format_exc())
                        place.wrong.append(f"{episode.label}: the campaign itself failed, see the log")
                    site.settle()
                    judged[episode.kind] += place.judged - before
                return [*place.wrong, *site.client.wrong, *(f"left in the queue: {row}" for row in site.drained())]
            finally:
                site.restore()
                place.file.unlink()

        names = sorted({episode.cluster for episode in episodes})
        with ThreadPoolExecutor(len(names)) as pool:
            found = list(zip(names, pool.map(on_one, names), strict=True))
    return [f"{name} {text}" for name, wrong in found for text in wrong], judged


def main() -> int:
    asked = arguments("features", __doc__, runs=140, faults=list(KINDS))
    episodes = draw(asked.seed, asked.runs, asked.only)

    def play(stage: Stage) -> bool:
        wrong, judged = campaign(stage.lab, stage.work, stage.runtime, episodes)
        for kind in KINDS:
            print(f"{kind:<12}{sum(each.kind == kind for each in episodes):>5} episodes, {judged[kind]} runs judged")
        print("\n".join([*wrong, f"{len(wrong)} violations"]))
        return not wrong

    return drive("features", asked, f"{len(episodes)} episodes", play)


if __name__ == "__main__":
    sys.exit(main())
