"""The contract of sweeps on this machine and on both clusters: each task runs once, with its own values."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.lab.conftest import Ssh
from tests.laptop import Laptop
from yurt.lab import Lab
from yurt.testing.waiting import eventually

pytestmark = pytest.mark.lab

SMALL = ["--cpus", "1", "--mem", "50"]


VALUES: list[Any] = [
    0,
    -7,
    2**63 - 1,
    0.1,
    1.0,
    1e-30,
    True,
    False,
    None,
    "",
    "1",
    "true",
    "0.10",
    'it\'s "both" `id` $(id) $HOME ${HOME} ; rm & | > x \\ \\n %s',
    "line\nline\n\n",
    "\ttab and\rreturn ",
    "grüße, 世界 🎉",
    "--like-an-option",
    "-n",
    "*",
    "!!",
    "x" * 40_000,
    [],
    [1, 2.5, "a b", None, True, ["deep"]],
    {},
    {"a": {"b": [1, "it's"]}, "ü": None},
]

AT_ONCE = 4
"""Values for each task: enough for few tasks, which still show that each has its own."""

SPEC = f"""\
import json
def spec():
    values = json.load(open("values.json"))
    for first in range(0, len(values), {AT_ONCE}):
        mine = values[first : first + {AT_ONCE}]
        yield {{**{{f"value{{place}}": value for place, value in enumerate(mine)}}, "number": first}}
"""

TELL = """\
import json, os, sys
mine = {name: value for name, value in os.environ.items() if name.startswith("YURT_PARAM_")}
params = json.load(open(os.environ["YURT_PARAMS"]))
with open(os.environ["YURT_OUTPUTS"] + "/seen.json", "w") as file:
    json.dump({"argv": sys.argv[1:], "params": params, "variables": mine}, file)
with open(os.environ["LEDGER"], "a") as file:
    file.write(os.environ["YURT_RUN_ID"] + "\\n")
"""


class Site:
    """One context, as a user uses it."""

    def __init__(self, name: str, laptop: Laptop, lab: Lab, folder: Path) -> None:
        self.name, self.laptop, self.ssh, self.folder = name, laptop, Ssh(lab), folder
        self.awaited: set[str] = set()

    def file(self, name: str) -> str:
        """Return a file that tasks can write to."""
        return str(self.folder / name) if self.name == "local" else f"/lustre/scratch/alice/{name}-{time.time_ns()}"

    def go(self) -> str:
        """Return a file that tasks wait for; it is created after the test."""
        file = self.file("go")
        self.awaited.add(file)
        return file

    def read(self, file: str) -> str:
        if self.name == "local":
            return Path(file).read_text() if Path(file).exists() else ""
        output = self.ssh.ask(self.name, f"sed 's/^/@/' '{file}' 2> /dev/null").out  # a site may print more
        return "".join(f"{line[1:]}\n" for line in output.splitlines() if line.startswith("@"))

    def touch(self, file: str) -> None:
        Path(file).touch() if self.name == "local" else self.ssh(self.name, f"touch '{file}'")
        self.awaited.discard(file)

    def close(self) -> None:
        """Release tasks that a failed test left waiting."""
        for file in [*self.awaited]:
            self.touch(file)

    def run(self, *words: str) -> str:
        return str(self.laptop.run(self.name, *SMALL, *words)["run"]["id"])

    def show(self, sweep: str) -> dict[str, Any]:
        found: dict[str, Any] = self.laptop("show", sweep, "--json").json["data"]
        return found

    def states(self, sweep: str) -> list[str]:
        return [row["state"] for row in self.show(sweep)["rows"]]

    def ended(self, sweep: str) -> list[dict[str, Any]]:
        done = self.laptop("wait", sweep, "--timeout", "400", "-q")
        assert done.code in (0, 1), done
        rows: list[dict[str, Any]] = self.show(sweep)["rows"]
        return rows


@pytest.fixture
def laptop(laptop: Laptop) -> Laptop:
    laptop.environment["YURT_LOCAL_CPUS"] = "6"
    laptop.environment["YURT_CLOCKS"] = "slow=14 last_refresh=1 rest=0"
    (laptop.project / "tell.py").write_text(TELL)
    (laptop.project / "values.json").write_text(json.dumps(VALUES))
    (laptop.project / "values.py").write_text(SPEC)
    return laptop


@pytest.fixture(params=["local", "alpha", "beta"])
def site(request: pytest.FixtureRequest, laptop: Laptop, lab: Lab, tmp_path: Path) -> Iterator[Site]:
    with closing(Site(request.param, laptop, lab, tmp_path)) as found:
        yield found


@pytest.fixture
def alpha(laptop: Laptop, lab: Lab, tmp_path: Path) -> Iterator[Site]:
    with closing(Site("alpha", laptop, lab, tmp_path)) as found:
        yield found


@pytest.fixture
def beta(laptop: Laptop, lab: Lab, tmp_path: Path) -> Iterator[Site]:
    with closing(Site("beta", laptop, lab, tmp_path)) as found:
        yield found


def as_word(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def test_values_arrive_as_they_are(site: Site, tmp_path: Path) -> None:
    ledger = site.file("ledger")
    sweep = site.run("--var", f"LEDGER={ledger}", "--spec", "values.py", "tell.py")
    groups = {first: VALUES[first : first + AT_ONCE] for first in range(0, len(VALUES), AT_ONCE)}
    assert [row["state"] for row in site.ended(sweep)] == ["completed"] * len(groups)
    assert sorted(site.read(ledger).split()) == [f"{sweep}.{number}" for number in range(len(groups))]
    done = site.laptop("fetch", sweep, "--to", str(tmp_path / "home"))
    assert done.code == 0, done
    files = {path: json.loads(path.read_text()) for path in (tmp_path / "home").rglob("seen.json")}
    seen = {each["params"]["number"]: each for each in files.values()}
    assert sorted(seen) == sorted(groups)
    for number, values in groups.items():
        each = seen[number]
        params = {f"value{place}": value for place, value in enumerate(values)}
        assert repr(each["params"]) == repr({**params, "number": number})
        texts = {name: as_word(value) for name, value in params.items() if value is not None}
        words = [word for name, text in texts.items() for word in (f"--{name}", text)]
        assert each["argv"] == [*words, "--number", str(number)]
        short = {f"YURT_PARAM_{name.upper()}": text for name, text in texts.items() if len(text) <= 32_768}
        assert each["variables"] == {**short, "YURT_PARAM_NUMBER": str(number)}


@pytest.mark.slow("beta")
def test_exit_codes_and_what_is_retried(site: Site) -> None:
    ledger, flag = site.file("ledger"), site.file("flag")
    command = f'echo $YURT_PARAM_CODE >> {ledger}; [ -e {flag} ] || exit "$YURT_PARAM_CODE"'
    sweep = site.run("--grid", "code=0,1,42,255", "sh", "-c", command)
    rows = site.ended(sweep)
    assert [(row["state"], row["exit_code"]) for row in rows] == [
        ("completed", 0),
        ("failed", 1),
        ("failed", 42),
        ("failed", 255),
    ]
    site.touch(flag)
    done = site.laptop("retry", "--failed", sweep, "--json")
    assert done.code == 0, done
    again = done.json["data"][0]["run"]["id"]
    assert [(row["state"], row["params"]["code"]) for row in site.ended(again)] == [
        ("completed", 1),
        ("completed", 42),
        ("completed", 255),
    ]
    assert Counter(site.read(ledger).split()) == {"0": 1, "1": 2, "42": 2, "255": 2}


@pytest.mark.slow("beta")
def test_one_task_cancelled(site: Site) -> None:
    ledger, go = site.file("ledger"), site.go()
    command = f'echo "$YURT_TASK_INDEX" >> {ledger}; until [ -e {go} ]; do sleep 0.1; done'
    sweep = site.run("--max-parallel", "2", "--grid", "n=1..5", "sh", "-c", command)
    eventually(lambda: sorted(site.read(ledger).split()) == ["0", "1"], pause=0.5)
    done = site.laptop("cancel", f"{sweep}.1", f"{sweep}.3")  # one running, one pending
    assert done.code == 0, done
    site.touch(go)
    assert [row["state"] for row in site.ended(sweep)] == [
        "completed",
        "cancelled",
        "completed",
        "cancelled",
        "completed",
    ]
    assert sorted(site.read(ledger).split()) == ["0", "1", "2", "4"]


@pytest.mark.slow("beta")
def test_cancel_a_sweep_with_finished_tasks(site: Site) -> None:
    """Without a refresh in between: finished tasks do not become cancelled, and the others never start."""
    ledger = site.file("ledger")
    command = f'echo "$YURT_TASK_INDEX" >> {ledger}; [ "$YURT_TASK_INDEX" = 0 ] || sleep 300'
    sweep = site.run("--max-parallel", "2", "--grid", "n=1..6", "sh", "-c", command)
    eventually(lambda: sorted(site.read(ledger).split()) == ["0", "1", "2"], pause=0.5)
    assert site.laptop("cancel", sweep).code == 0
    rows = site.ended(sweep)
    assert [row["state"] for row in rows] == ["completed", *["cancelled"] * 5]
    assert rows[0]["exit_code"] == 0
    assert sorted(site.read(ledger).split()) == ["0", "1", "2"]


def most_at_once(text: str) -> int:
    """Return the maximum number of open intervals in lines "+" and "-" with times."""
    events = sorted((float(line.split()[1]), line.startswith("+")) for line in text.splitlines())
    now = most = 0
    for _at, begins in events:
        now += 1 if begins else -1
        most = max(most, now)
    return most


@pytest.mark.slow("beta")
def test_no_more_at_a_time_than_asked_for(site: Site) -> None:
    """On beta with two arrays, as if an array could have at most ten tasks."""
    number, limit = 8, 2
    if site.name == "beta":
        number, limit = 16, 6
        file = site.laptop.home / "config" / "facts" / "beta.json"
        kept = json.loads(file.read_text())
        assert kept["facts"]["max_array"] == 101
        file.write_text(json.dumps({**kept, "facts": {**kept["facts"], "max_array": 11}}))
    ledger = site.file("ledger")
    command = f'echo "+ $(date +%s.%N) $SLURM_ARRAY_JOB_ID" >> {ledger}; sleep 0.5; echo "- $(date +%s.%N)" >> {ledger}'
    sweep = site.run("--max-parallel", str(limit), "--grid", f"n=1..{number}", "sh", "-c", command)
    assert [row["state"] for row in site.ended(sweep)] == ["completed"] * number
    text = site.read(ledger)
    assert text.count("+") == number and 0 < most_at_once(text) <= limit
    arrays = {line.split()[2] for line in text.splitlines() if line.startswith("+") and site.name != "local"}
    assert len(arrays) == {"local": 0, "alpha": 1, "beta": 2}[site.name]


@pytest.mark.slow("alpha")  # Slurm takes its time to requeue
def test_a_task_that_asks_for_another_start(site: Site) -> None:
    ledger = site.file("ledger")
    command = (
        f'echo "$YURT_TASK_INDEX $YURT_RESTARTS" >> {ledger}; touch "$YURT_CHECKPOINTS/$YURT_RESTARTS";'
        ' [ "$YURT_TASK_INDEX" != 1 ] || [ "$YURT_RESTARTS" = 2 ] || exit 85'
    )
    sweep = site.run("--requeue", "--time", "10", "--grid", "n=1..3", "sh", "-c", command)
    assert [row["state"] for row in site.ended(sweep)] == ["completed"] * 3
    assert sorted(site.read(ledger).splitlines()) == ["0 0", "1 0", "1 1", "1 2", "2 0"]


def test_a_task_with_restarts_beats(site: Site) -> None:
    """A start that may be followed by another has a heartbeat. Here each task completes when it has seen its own."""
    site.laptop.environment["YURT_CLOCKS"] = "slow=14 lease=13 last_refresh=1 rest=0"
    command = 'for try in $(seq 900); do [ ! -e "$YURT_RUN_DIR/beat.1.b" ] || exit 0; sleep 0.1; done; exit 1'
    sweep = site.run("--retries", "1", "--grid", "n=1..2", "sh", "-c", command)
    assert [row["state"] for row in site.ended(sweep)] == ["completed"] * 2


def test_cancel_a_task_that_is_not_submitted_yet(alpha: Site) -> None:
    """It is never submitted."""
    ledger, go = alpha.file("ledger"), alpha.go()
    command = f'echo "$YURT_TASK_INDEX" >> {ledger}; until [ -e {go} ]; do sleep 0.1; done'
    sweep = alpha.run("--qos", "few", "--grid", "n=1..9", "sh", "-c", command)
    assert "waiting" in alpha.show(sweep)["task_states"]
    assert alpha.laptop("cancel", f"{sweep}.8").code == 0
    tally = alpha.show(sweep)["task_states"]
    assert sum(tally.values()) == 9 and tally["cancelled"] == 1
    alpha.touch(go)
    assert [row["state"] for row in alpha.ended(sweep)] == [*["completed"] * 8, "cancelled"]
    assert sorted(alpha.read(ledger).split()) == [str(number) for number in range(8)]


def test_arrays_fit_without_cached_facts(beta: Site, lab: Lab) -> None:
    """Facts are dropped after a refusal and after a week; then the site is probed again."""
    lab.faults.cut("beta")
    try:
        made = beta.laptop.run("beta", *SMALL, "--hold", "--grid", "n=1..150", "true")
        assert made["status"]["state"] == "waiting"
    finally:
        lab.faults.heal("beta")
    (beta.laptop.home / "config" / "facts" / "beta.json").unlink()
    eventually(lambda: beta.laptop("agent", "once").code == 0)
    sweep = made["run"]["id"]
    assert beta.show(sweep)["task_states"] == {"queued": 150} or set(beta.states(sweep)) == {"held"}
    assert beta.laptop("cancel", sweep).code == 0


def test_more_memory_than_asked_for(alpha: Site) -> None:
    command = ["python3", "-c", "import sys; b'x' * (1 << int(sys.argv[2]))"]
    sweep = alpha.run("--grid", "n=10,29", *command)
    assert [row["state"] for row in alpha.ended(sweep)] == ["completed", "out_of_memory"]


@pytest.mark.slow
def test_over_the_time_limit(site: Site) -> None:
    sweep = site.run("--time", "1", "--grid", "n=0,300", "sh", "-c", 'sleep "$YURT_PARAM_N"')
    assert [row["state"] for row in site.ended(sweep)] == ["completed", "timeout"]


@pytest.mark.slow
def test_preempted_tasks_go_on(alpha: Site) -> None:
    ledger, go = alpha.file("ledger"), alpha.go()
    command = f'echo "$YURT_TASK_INDEX" >> {ledger}; touch "$YURT_CHECKPOINTS/x"; until [ -e {go} ]; do sleep 0.2; done'
    sweep = alpha.run("--partition", "scavenge", "--requeue", "--grid", "n=1..3", "sh", "-c", command)
    eventually(lambda: len(alpha.read(ledger).split()) == 3, pause=0.5)
    nodes = alpha.ssh("alpha", "sinfo -h -o %D").splitlines()[-1].strip()
    greedy = alpha.laptop.run("alpha", "--partition", "main", "--sbatch-option", f"nodes={nodes}",
                              "--sbatch-option", "exclusive", "sleep", "5")["run"]["id"]  # fmt: skip
    eventually(lambda: alpha.laptop.row(greedy)["state"] in ("running", "completed"), pause=1)
    alpha.touch(go)
    assert [row["state"] for row in alpha.ended(sweep)] == ["completed"] * 3
    starts = Counter(alpha.read(ledger).split())
    assert set(starts) == {"0", "1", "2"} and sum(starts.values()) > 3


def test_job_limit_and_refusal(alpha: Site) -> None:
    """The sweep stays saved, or is rejected; the login node is not queried repeatedly."""
    held = [alpha.laptop.run("alpha", *SMALL, "--qos", "few", "--hold", "--grid", "n=1..9", "true")["run"]["id"]]
    waits = alpha.laptop.run("alpha", *SMALL, "--qos", "few", "--grid", "n=1..3", "true")
    assert waits["status"]["state"] == "waiting" and "you have reached your job limit" in waits["warnings"][0]
    for sweep in (*held, waits["run"]["id"]):
        assert alpha.laptop("cancel", sweep).code == 0
    refused = alpha.laptop(
        "--context", "alpha", "run", *SMALL, "--sbatch-option", "licenses=nosuch", "--grid", "n=1..3", "true"
    )
    assert (refused.code, "Slurm rejected" in refused.err) == (5, True), refused
