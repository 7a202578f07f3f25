"""Races: one run on several clusters, of which the first to start wins. Real Slurm, real ssh."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from functools import partialmethod
from typing import Any

import pytest

from tests.lab.conftest import Ssh
from tests.laptop import Laptop
from tests.lifecycle.test_node_down import control, kill_silently
from yurt.lab import Lab
from yurt.store import Store
from yurt.testing.waiting import eventually

pytestmark = pytest.mark.lab

SCRATCH = "/lustre/scratch/alice"


class Races:
    """A user who races runs on the clusters of the lab, and a ledger on each site."""

    def __init__(self, laptop: Laptop, ssh: Ssh) -> None:
        self.laptop, self._ssh = laptop, ssh
        self.ledger = f"{SCRATCH}/races-{os.urandom(4).hex()}"

    def ssh(self, name: str, command: str) -> str:
        """Run a command on a login host; return its output without that of the dotfiles."""
        return self._ssh(name, f"echo '=='; {command}").partition("==\n")[2].strip()

    def allow(self, **keys: str) -> None:
        """Add settings to the contexts of clusters: alpha="race_wait: 2m"."""
        file = self.laptop.home / "config/contexts.yaml"
        text = file.read_text()
        for name, lines in keys.items():
            added = "".join(f"    {line}\n" for line in lines.split("; "))
            text = text.replace(f"  {name}:\n", f"  {name}:\n{added}", 1)
        file.write_text(text)

    def run(self, *words: str) -> str:
        done = self.laptop("run", "--json", *words)
        assert done.code == 0, done
        found: str = done.json["data"]["run"]["id"]
        return found

    def work(self, seconds: float = 0) -> list[str]:
        script = f'echo "$YURT_CONTEXT ${{YURT_TASK_INDEX:--}}" >> {self.ledger}; sleep {seconds} && echo done'
        return ["sh", "-c", script]

    def starts(self) -> list[str]:
        """Return what the ledgers of both sites say."""
        lines = []
        for name in ("alpha", "beta"):
            lines += self.ssh(name, f"cat {self.ledger} 2> /dev/null || :").splitlines()
        return sorted(lines)

    def release(self, *names: str) -> None:
        """Release the jobs of this user's races, which are held."""
        for name in names:
            for job in self.jobs(name):
                self.ssh(name, f"scontrol release jobname={job}")

    def show(self, race: str) -> dict[str, Any]:
        found: dict[str, Any] = self.laptop.quick("show", race, "--json").json["data"]
        return found

    def left(self) -> list[str]:
        """Return what the races of this user have left on the sites. Other tests may have left jobs there."""
        found = []
        for name in ("alpha", "beta"):
            found += self.ssh(
                name, f"grep -o 'yurt-race-.*' .ssh/authorized_keys; ls {SCRATCH}/yurt/races || :"
            ).split()
            found += self.jobs(name)
        own = self.ids()
        return [each for each in found if any(run in each for run in own)]

    def jobs(self, name: str) -> list[str]:
        """Return the names of the jobs of this user's races in the queue of a cluster."""
        own = self.ids()
        return [each for each in self.ssh(name, "squeue -h -o %j").split() if any(run in each for run in own)]

    def ids(self) -> list[str]:
        """Return the ids of all races and candidates."""
        with Store(str(self.laptop.home / "data/yurt.db")) as store:
            races = [entry.run.id for entry in store.newest()]
            return [*races, *(each for race in races for each in store.candidates(race))]

    def clear(self) -> None:
        """Cancel what a test that failed has left in the queues; other tests use them, too."""
        if (self.laptop.home / "data/yurt.db").exists():
            for name in ("alpha", "beta"):
                for job in self.jobs(name):
                    self.ssh(name, f"scancel -n {job}")

    def are_over(self) -> bool:
        self.laptop.quick("ps")
        left = self.left()
        print("left", left)
        return not left


@pytest.fixture
def down(lab: Lab) -> Iterator[list[str]]:
    """Nodes of alpha that a test sets down; they are resumed at the end."""
    nodes: list[str] = []
    yield nodes
    for node in nodes:
        control(lab, "update", f"nodename={node}", "state=resume")


@pytest.fixture
def races(laptop: Laptop, lab: Lab) -> Iterator[Races]:
    made = Races(laptop, Ssh(lab))
    yield made
    lab.faults.unlink()
    made.clear()


@pytest.mark.parametrize("winner", ["alpha", "beta"])
def test_the_first_to_start_wins(races: Races, winner: str) -> None:
    """A yurt command carries the claim of a cluster that cannot ask; nothing is configured for that."""
    race = races.run("--race", "alpha,beta", "--hold", *races.work(1))
    assert races.laptop.row(race)["candidates"] == ["alpha", "beta"]
    assert races.laptop.quick("logs", race).code == 0, "none yet"
    assert "no candidate of this race has started yet" in races.laptop.quick("fetch", race).err
    races.release(winner)
    entry = races.laptop.ended(race)
    assert (entry["state"], entry["context"]) == ("completed", winner)
    assert races.starts() == [f"{winner} -"]
    shown = races.show(race)
    assert {each["context"]: each["won"] for each in shown["candidates"]} == {
        name: name == winner for name in ("alpha", "beta")
    }
    assert all(each["queued"] is not None for each in shown["candidates"])
    assert races.laptop.quick("logs", race).out == "done\n"
    eventually(races.are_over)


def test_asked_by_ssh_with_the_laptop_off(races: Races, lab: Lab) -> None:
    """Nothing but the two sites takes part in the decision."""
    lab.faults.link()
    races.allow(alpha="race_address: alice@alpha", beta="race_keys: true")
    race = races.run("--race", "alpha,beta", "--race-mode", "arbiter", "--hold", *races.work(1))
    (line,) = races.ssh("alpha", f"grep yurt-race-{race} .ssh/authorized_keys").splitlines()
    assert re.fullmatch(
        r'restrict,command="sh [^"]+/arbiter\.sh",expiry-time="\d{12}" ssh-ed25519 \S+ yurt-race-\S+', line
    )
    races.release("beta")
    eventually(lambda: races.starts() == ["beta -"])
    races.release("alpha")
    eventually(lambda: not races.jobs("alpha"))
    assert races.starts() == ["beta -"], "the loser ran no code"
    entry = races.laptop.ended(race)
    assert (entry["state"], entry["context"]) == ("completed", "beta")
    eventually(races.are_over)


def test_the_key_of_a_race_can_only_claim(races: Races, lab: Lab) -> None:
    lab.faults.link()
    races.allow(alpha="race_address: alice@alpha", beta="race_keys: true")
    race = races.run("--race", "alpha,beta", "--hold", *races.work())
    folder = f"{SCRATCH}/yurt/races/{race}-key"
    assert races.ssh("beta", f"stat -c '%a %A' {folder} {folder}/key") == "700 drwx------\n600 -rw-------"
    files = f"-o UserKnownHostsFile={folder}/known_hosts -o HostKeyAlias=yurt-arbiter"
    key = f"-n -T -i {folder}/key -o IdentitiesOnly=yes -o BatchMode=yes {files}"

    def ask(words: str, program: str = "ssh", *, target: str = "alice@alpha") -> str:
        return races.ssh("beta", f"timeout 20 {program} {key} {target} {words} 2> /dev/null; echo code $?")

    assert ask("check") == "yurt-race check\ncode 0"
    for words in (
        "''",
        "id",
        "'claim 0 a; id'",
        "'claim 0 $(id)'",
        "'claim ../../x a'",
        "'claim 0 a b'",
        "'claim 0 *'",
    ):
        assert ask(words) == "code 2", words
    assert ask("'claim 0 1nfaaa0-aaaa0'") == "yurt-race 1nfaaa0-aaaa0\ncode 0", "the first one wins"
    assert ask("'claim 0 1nfaaa0-bbbb0'") == "yurt-race 1nfaaa0-aaaa0\ncode 0"
    assert ask("'claim 0 1nfaaa0-aaaa0'") == "yurt-race 1nfaaa0-aaaa0\ncode 0", "asked again, the same answer"
    assert ask("", "ssh -N -o ExitOnForwardFailure=yes -W localhost:22") != "code 0"
    copy = races.ssh("beta", f"scp {key.replace('-n -T ', '')} /etc/hostname alice@alpha:stolen 2>&1; echo code $?")
    assert "code 0" not in copy and races.ssh("alpha", "ls stolen 2> /dev/null || echo none") == "none"
    races.laptop.quick("cancel", race)
    eventually(races.are_over)


def test_a_sweep_is_raced_task_by_task(races: Races) -> None:
    race = races.run("--race", "alpha,beta", "--cpus", "8", "--grid", "n=0..9", *races.work(2))
    entry = races.laptop.ended(race)
    assert (entry["state"], entry["task_states"]) == ("completed", {"completed": 10})
    starts = [line.split() for line in races.starts()]
    assert sorted(int(task) for _context, task in starts) == list(range(10)), "one result for each task"
    counts = {each["context"]: each["tasks"] for each in races.show(race)["candidates"]}
    assert counts == {name: sum(where == name for where, _task in starts) for name in counts}
    assert all(counts.values()), "both took part"
    logs = races.laptop.quick("logs", race).out
    assert logs.count("done") == 10
    rows = races.show(race)["rows"]
    assert [row["params"] for row in rows] == [{"n": number} for number in range(10)]
    eventually(races.are_over)


def test_this_machine_takes_part(races: Races) -> None:
    """Its job starts yurt by itself to ask the arbiter."""
    race = races.run("--race", "alpha,local", "--hold", "echo", "here")
    entry = races.laptop.ended(race)
    assert (entry["state"], entry["context"]) == ("completed", "local")
    assert races.laptop.quick("logs", race).out == "here\n"
    eventually(races.are_over)


def test_cancelled_and_raced_again(races: Races) -> None:
    race = races.run("--race", "alpha,beta", "--hold", "--name", "quick", *races.work())
    assert races.laptop.quick("cancel", race, "--json").json["data"][0]["state"] == "cancelled"
    assert races.left() == []
    done = races.laptop("retry", "quick", "--json")
    assert done.code == 0, done
    (entry,) = done.json["data"]
    again = entry["run"]["id"]
    assert entry["run"]["retry_of"] == race and races.show(race)["retried_as"] == [again]
    races.release("alpha", "beta")
    assert races.laptop.ended(again)["state"] == "completed"
    assert len(races.starts()) == 1
    assert [row["id"] for row in races.laptop.quick("ps", "--json").json["data"]] == [again, race]


@pytest.mark.slow
@pytest.mark.parametrize("waits", ["alpha", "beta"])  # so the claims are on the other one
def test_a_silent_winner_is_released(races: Races, lab: Lab, waits: str) -> None:
    """The race waits for a site that does not respond, until the user gives it up."""
    races.allow(**{"beta" if waits == "alpha" else "alpha": "race_wait: 0"})
    race = races.run("--race", "alpha,beta", "--hold", *races.work(1000))
    races.release("alpha")
    races.laptop.starts(race)
    refused = races.laptop.quick("race", "release", race, "--yes")
    assert refused.code == 5 and "alpha responds" in refused.err
    lab.faults.cut("alpha")
    try:
        done = races.laptop("race", "release", race, "--yes", "--json")
        assert done.code == 0 and done.json["data"]["submitted"] == ["beta"], done
        races.release("beta")
        eventually(lambda: races.laptop.row(race)["context"] == "beta" and races.laptop.row(race)["state"] == "running")
    finally:
        lab.faults.heal("alpha")
    assert races.laptop.quick("cancel", race).code == 0
    eventually(lambda: races.laptop.row(race)["state"] == "cancelled")
    eventually(races.are_over)


def test_a_job_without_an_answer_gives_its_node_back(races: Races) -> None:
    """After five starts it is held, until the user releases it."""
    races.allow(beta="race_wait: 2s")
    race = races.run("--race", "alpha,beta", "--hold", *races.work())
    races.release("beta")
    (job,) = races.jobs("beta")
    eventually(lambda: "BeginTime" in races.ssh("beta", f"squeue -h -n {job} -o '%r'"))
    folder = f"{SCRATCH}/yurt/projects/*/runs"
    assert "asks again later" in races.ssh("beta", f"cat {folder}/*/err.log")
    assert races.starts() == []

    races.ssh("beta", f"for each in {folder}/*{job[5:]}/rounds; do printf '0\\n0\\n0\\n' >> $each; done")
    again = f"squeue -h -n {job} -o '%i %r' | while read -r id why; do [ $why != BeginTime ] ||"
    races.ssh("beta", f"{again} scontrol update jobid=$id starttime=now; done; :")
    eventually(lambda: "JobHeldUser" in races.ssh("beta", f"squeue -h -n {job} -o '%r'"))
    eventually(lambda: "told its job who was first" in races.show(race)["candidates"][1]["reason"])
    assert "is held" in races.ssh("beta", f"cat {folder}/*/err.log") and races.starts() == []

    def completed() -> bool:
        """Release it; on a busy machine, an answer may take longer than it waits."""
        races.laptop.quick("release", race)
        return bool(races.laptop.row(race)["state"] == "completed")

    eventually(completed)
    assert len(races.starts()) == 1


@pytest.mark.parametrize(
    "case",
    [
        "retries",
        pytest.param("no retries", marks=pytest.mark.slow),
        pytest.param("checkpoints", marks=pytest.mark.slow),
    ],
)
def test_the_node_of_the_winner_fails(races: Races, lab: Lab, down: list[str], case: str) -> None:
    """With --retries, the race goes on: where it starts first, or where its checkpoints are."""
    races.laptop.environment["YURT_CLOCKS"] = "slow=14 last_refresh=1 rest=0 forgiving=8 settling=2 lease=12"
    retries = [] if case == "no retries" else ["--retries", "1"]
    save = "echo 1 > $YURT_CHECKPOINTS/1; " if case == "checkpoints" else ""
    first = '[ "$YURT_CONTEXT,$YURT_RESTARTS" != alpha,0 ] || sleep 300; echo done'
    script = f'{save}echo "$YURT_CONTEXT -" >> {races.ledger}; {first}'
    alpha = "alpha" if save else "alpha:nodelist=n3"  # the others are of no use to it
    race = races.run("--race", f"{alpha},beta", "--hold", *retries, "sh", "-c", script)
    races.release("alpha")
    eventually(lambda: races.laptop.row(race)["state"] == "running" and races.starts() == ["alpha -"])
    winner = next(each["id"] for each in races.show(race)["candidates"] if each["won"])
    node = races.laptop.row(race)["node"]
    down.append(node)
    kill_silently(lab, node, winner)
    control(lab, "update", f"nodename={node}", "state=drain", "reason=test")  # it would return to service at once
    states = set()

    def final() -> bool:
        states.add(races.laptop.row(race)["state"])
        return bool(states & {"completed", "node_failed"})

    eventually(final)
    assert "starting" not in states
    if retries:
        where = "alpha" if save else "beta"
        row = races.laptop.row(race)
        assert (row["state"], row["context"]) == ("completed", where) and races.starts() == ["alpha -", f"{where} -"]
        states_of = [(each["context"], each["state"]) for each in races.show(race)["candidates"]]
        assert save or states_of[0] == ("alpha", "node_failed")
    else:
        again = f"its node failed on alpha; race again with `yurt retry {race}`"
        assert again in races.laptop.quick("show", race).out
        assert races.laptop.quick("retry", race).code == 0
        races.laptop.quick("cancel", "-")
    eventually(races.are_over)


def test_a_cluster_that_is_unreachable_joins_later(races: Races) -> None:
    """The other one is the arbiter, also later. The cluster was never reached before."""
    file = races.laptop.home / "config/contexts.yaml"
    right = file.read_text()
    file.write_text(right.replace("slurm_url: alice@alpha\n", "slurm_url: nobody@nowhere.invalid\n"))
    assert file.read_text() != right
    done = races.laptop.quick("run", "--json", "--race", "alpha,beta", "--hold", *races.work())
    assert done.code == 0 and any("the candidate on alpha is saved" in each for each in done.json["warnings"]), done
    race = done.json["data"]["run"]["id"]
    assert {each["context"]: each["state"] for each in races.show(race)["candidates"]}["alpha"] == "waiting"
    assert races.ssh("beta", f"ls {SCRATCH}/yurt/races") != ""
    file.write_text(right)
    eventually(lambda: races.laptop.quick("ps").code == 0 and len(races.jobs("alpha")) == 1)
    races.release("alpha")
    entry = races.laptop.ended(race)
    assert (entry["state"], entry["context"], races.starts()) == ("completed", "alpha", ["alpha -"])
    eventually(races.are_over)


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--race", "alpha"], "at least two different candidates"),
        (["--race", ""], "at least two different candidates"),
        (["--race", "alpha:partition,beta"], "'alpha:partition' is neither a context nor CONTEXT:KEY=VALUE"),
        (["--race", "alpha,alpha"], "at least two different candidates"),
        (["--race", "alpha,beta"], "cannot find out which cluster was first"),
        (["--race", "alpha,beta", "--race-mode", "arbiter"], "lets the others ask it by ssh"),
        (["--race", "alpha,nowhere"], "context 'nowhere' not found"),
        (["--race", "alpha:color=red,beta"], "'color' cannot differ between candidates"),
        (["--race", "alpha:partition=nope,local"], "partition 'nope' not found"),
        (["--race-mode", "grant"], "--race-mode needs --race"),
        (["--race", "alpha,local", "--dry-run"], "--dry-run shows one plan"),
    ],
)
def test_refused_before_anything_is_saved(races: Races, words: list[str], text: str) -> None:
    races.allow(alpha="race_wait: 0", beta="race_wait: 0")
    done = races.laptop.quick("run", *words, "true")
    assert done.code in (2, 3, 5) and text in done.err, done
    assert races.laptop.quick("ps", "--cached", "--json").json["data"] == []


def test_ctrl_c_says_whether_the_race_is_saved(races: Races, monkeypatch: pytest.MonkeyPatch) -> None:
    add = Store.add_candidates

    def interrupted(index: Store, *arguments: Any, after: bool) -> bool:
        if after:
            add(index, *arguments)
        raise KeyboardInterrupt

    words = ["run", "--race", "alpha,beta", *races.work()]
    with monkeypatch.context() as patch:
        patch.setattr(Store, "add_candidates", partialmethod(interrupted, after=False))
        done = races.laptop.quick(*words)
        assert (done.code, done.err.strip()) == (130, "yurt: interrupted; nothing was submitted")
        assert races.ids() == []
        patch.setattr(Store, "add_candidates", partialmethod(interrupted, after=True))
        done = races.laptop.quick(*words)
    (saved,) = (row["id"] for row in races.laptop.quick("ps", "--json").json["data"])
    assert done.code == 130 and f"interrupted; run {saved} is saved" in done.err
    races.laptop.ended(saved)
    assert len(races.starts()) == 1
    eventually(races.are_over)
