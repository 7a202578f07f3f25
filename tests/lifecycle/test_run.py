"""run, ps, show, logs, wait and cancel on the command line: output, errors, and what they do not change."""

from __future__ import annotations

import json
import os
import re
import signal
import sqlite3
import subprocess
import time
from functools import partialmethod
from pathlib import Path
from typing import Any

import msgspec
import pexpect
import pytest
from rich.cells import cell_len

from tests.calls import YURT
from tests.laptop import Laptop
from tests.user import User, said
from yurt.cli.run_facts import memory_hint
from yurt.config import facts as kept
from yurt.model.context import Context
from yurt.model.facts import Facts, NodeKind, Partition, Tier
from yurt.model.run import CANCEL_NOT_SENT, Resources, Run, State, Status
from yurt.model.usage import Usage
from yurt.store import Store
from yurt.testing.runs import PATIENT
from yurt.testing.waiting import eventually

NOWHERE = Context(name="big", type="slurm", slurm_url="alice@big.invalid", partition="main", time="2h", account="lab")

CONTEXTS = """\
contexts:
  big:
    type: slurm
    slurm_url: alice@big.invalid
    partition: main
    account: lab
    time: 2h
    resources: {cpu: 2, mem: 4G}
    sbatch_options: {constraint: fast}
"""

FACTS = Facts(
    probed_at=0,
    user="alice",
    host="login",
    slurm_version="22.05.8",
    partitions=[
        Partition(name="main", default=True, max_minutes=1440, nodes=[NodeKind(count=2, cpus=8, memory_mb=8000)]),
        Partition(name="short", max_minutes=2),
    ],
    variables={"HOME": "/home/alice", "SCRATCH": "/scratch/alice"},
    tiers=[Tier(name="scratch", variable="SCRATCH", path="/scratch/alice", free_mb=1000)],
)


WRONG_OPTIONS = [
    (["--cpus", "abc"], "--cpus must be a positive integer, not 'abc'"),
    (["--cpus", "0"], "--cpus must be a positive integer, not '0'"),
    (["--cpus", "-1"], "--cpus must be a positive integer, not '-1'"),
    (
        ["--gpus", "a:b:c"],
        "--gpus must be a number of GPUs such as 2, or a type and a number such as a100:2, not 'a:b:c'",
    ),
    (["--mem", "5X"], "--mem must be a memory size such as 4096 (MB), 512M, 8G or 1T, not '5X'"),
    (["--time", "0"], "--time must be a positive duration"),
    (["--time", "soon"], "--time must be a positive duration"),
    (["--ntasks", "0"], "--ntasks must be a positive integer, not '0'"),
    (["-c", "0"], "--cpus must be a positive integer, not '0'"),
    (["--ntasks-per-node", "two"], "--ntasks-per-node must be a positive integer, not 'two'"),
    (["--mem-per-cpu", "5X"], "--mem-per-cpu must be a memory size such as 4096 (MB), 512M, 8G or 1T, not '5X'"),
    (["--mem", "1G", "--mem-per-cpu", "1G"], "--mem and --mem-per-cpu cannot be combined"),
    (["--gres", "gpu:two:x"], "--gres must be a list of resources such as gpu:2, gpu:a100:2 or gpu:1,lustre:1"),
    (["--gpus", "1", "--gres", "lustre:1"], "--gpus and --gres cannot be combined"),
    (["--sbatch-option", "=x"], "--sbatch-option: '=x' is not KEY=VALUE"),
    (["--sbatch-option", "array=1-3"], "--array cannot be used: a run must be exactly one job"),
    (["--sbatch-option", "-J=x"], "--job-name cannot be used: yurt sets it itself"),
    (["--sbatch-option", "a b=x"], "'a b' is not an sbatch option"),
    (["--var", "x"], "--var: 'x' is not KEY=VALUE"),
    (["--var", "=x"], "--var: '=x' is not KEY=VALUE"),
    (["--var", "1A=x"], "--var: '1A' is not a valid variable name"),
    (["--var", "UID=1"], "--var: 'UID' is reserved by the shell"),
    (["--param", "x"], "--param: 'x' is not KEY=VALUE"),
    (["--param", "a b=1"], "invalid parameter name 'a b': use letters, digits, '_', '.' and '-'"),
    (["--param", "--=1"], "invalid parameter name '--'"),
    (["--param", "a.b=1", "--param", "a_b=2"], "parameters 'a.b' and 'a_b' use the same variable $YURT_PARAM_A_B"),
    (["--largest-file", "0"], "--largest-file must be an integer of at least 1, not '0'"),
    (["--max-requeues", "3"], "--max-requeues needs --requeue"),
    (["--signal-before", "3s"], "--signal-before needs --requeue"),
    (["--retry-errors"], "--retry-errors needs --retries"),
    (["--requeue", "--signal-before", "soon"], "--signal-before must be a positive duration such as 90s"),
    (
        ["--requeue", "--time", "1", "--signal-before", "60s"],
        "--signal-before (60 s) must be shorter than the time limit (60 s)",
    ),
    (["--requeue", "--max-requeues", "0"], "--max-requeues must be an integer of at least 1, not '0'"),
    (["--venv", "\udcff"], "venv is not valid UTF-8: \\xff"),
    (["--bogus"], "unknown option '--bogus'"),
    (["--name"], "no script or command given"),
]


@pytest.mark.parametrize(("options", "sentence"), WRONG_OPTIONS, ids=lambda value: " ".join(value)[:40])
def test_a_wrong_option_of_run(user: User, options: list[str], sentence: str) -> None:
    assert said(user.quick("run", "--no-snapshot", *options, "train.py"), 2).startswith(sentence)
    assert user.contents() == []


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (["run"], 2, "no script or command given"),
        (["run", "--"], 2, "no script or command given"),
        (["run", ""], 2, "no script or command given"),
        (["run", "nosuch.py"], 2, "file 'nosuch.py' not found"),
        (["run", "tran.py"], 2, "file 'tran.py' not found; did you mean 'train.py'?"),
        (["run", "sub/nosuch.sh"], 2, "file 'sub/nosuch.sh' not found"),
        (["run", "train.py", "--", "--a.b", "1", "--a-b", "2"], 2, "parameters 'a.b' and 'a-b' use the same variable"),
        (["run", "--context", "nosuch", "train.py"], 3, "context 'nosuch' not found"),
        (["run", "--cpus", "9999", "train.py"], 5, "local: 9999 cores requested, but this machine has 2"),
        (["run", "--gpus", "a100:5", "train.py"], 5, "local: 5 GPUs requested, but this machine has 1"),
        (["run", "--mem", "900T", "train.py"], 5, "local: 921600G of memory requested, but this machine has "),
        (["run", "--nodes", "2-4", "train.py"], 5, "local: 2 nodes requested, but this machine is one node"),
        (["ps", "x"], 2, "got unexpected extra argument (x)"),
        (["ps", "--filter", "x"], 2, "--filter: 'x' is not KEY=VALUE"),
        (["ps", "--filter", "state=done"], 2, "--filter: unknown state 'done'"),
        (["ps", "-n", "0"], 2, "--limit must be an integer of at least 1, not '0'"),
        (["show"], 2, "missing argument 'RUN'"),
        (["show", "zzz"], 3, "run 'zzz' not found"),
        (["show", ""], 3, "run '' not found"),
        (["show", "%"], 3, "run '%' not found"),
        (["show", "\udcff"], 3, "run '"),
        (["show", "-"], 3, "there are no runs yet"),
        (["show", "a", "b"], 2, "got unexpected extra argument (b)"),
        (["logs"], 2, "missing argument 'RUN...'"),
        (["logs", "zzz"], 3, "run 'zzz' not found"),
        (["logs", "--tail", "x", "-"], 2, "--tail must be an integer of at least 1, not 'x'"),
        (["wait", "zzz"], 3, "run 'zzz' not found"),
        (["wait", "--timeout", "-1", "-"], 2, "--timeout: '-1' is not a duration"),
        (["run", "--shuffle", "train.py"], 2, "--shuffle needs a sweep (--grid, --zip, --config or --spec)"),
        (["retry"], 2, "no runs given"),
        (["shell", "-"], 2, "cannot open a shell: standard input is not a terminal"),
        (["prune", "--older-than", "soon"], 2, "--older-than: 'soon' is not a duration"),
        (["prune", "--dry-run", "--yes"], 2, "--dry-run and --yes cannot be combined"),
        (["cancel"], 2, "missing argument 'RUN...'"),
        (["cancel", "@last"], 3, "there are no runs yet"),
        (["agent", "once", "x"], 2, "got unexpected extra argument (x)"),
    ],
    ids=lambda value: " ".join(value)[:40] if isinstance(value, list) else None,
)
def test_wrong_usage_of_every_verb(user: User, words: list[str], code: int, sentence: str) -> None:
    machine = {"YURT_LOCAL_CPUS": "2", "YURT_LOCAL_GPUS": "1"}
    assert said(user.quick(*words, **machine), code).startswith(sentence)
    answer = user.quick(words[0], "--json", *words[1:], **machine)
    assert answer.code == code and answer.err == "" and len(answer.out.splitlines()) == 1
    error = answer.json["error"]
    assert error["message"].startswith(sentence) and error["fault"] == ("site" if code == 5 else "user")
    assert user.contents() == []


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("time: soon", "1: time must be a positive duration"),
        ("nosuchkey: 1", "1: nosuchkey is not a key of a project; valid keys: name, partition"),
        ("\npartiton: main", "2: partiton is not a key of a project; did you mean 'partition'?"),
        ("resources: {cpu: x}", "1: resources.cpu must be a positive integer, not 'x'"),
        ("[1, 2]", "1: the file must be a mapping of settings"),
        ("a: b: c", "1: the file is not valid YAML"),
        ("time: 1\ntime: 2", "2: time is set twice, in lines 1 and 2; keep one"),
        ("slurm_url: x", "1: slurm_url is a key of a context, not of a project; move it to contexts.yaml"),
        ("variables: [1]", "1: variables must be a mapping of names to text, not a list"),
        ("name: [a]", "1: name must be text, not a list"),
        ("cmd_type: x", "1: cmd_type must be sbatch or srun, not 'x'"),
    ],
)
def test_a_wrong_yurt_yaml(user: User, text: str, sentence: str) -> None:
    (user.project / "yurt.yaml").write_text(text)
    assert said(user.quick("run", "train.py"), 2).startswith(f"{user.project}/yurt.yaml:{sentence}")
    assert user.contents() == []


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("variables: {A B: 1}", "variables: 'A B' is not a valid variable name"),
        ("sbatch_options: {array: 1-3}", "--array cannot be used: a run must be exactly one job"),
        ("sbatch_options: {output: x}", "--output cannot be used: yurt sets it itself"),
    ],
)
def test_settings_that_make_no_run(user: User, text: str, sentence: str) -> None:
    (user.project / "yurt.yaml").write_text(text)
    assert said(user.quick("run", "--no-snapshot", "train.py"), 2) == sentence
    assert user.contents() == []


@pytest.mark.parametrize("verb", ["run", "ps", "show", "logs", "wait", "cancel", "agent once"])
def test_help_has_examples(user: User, verb: str) -> None:
    answer = user.quick(*verb.split(), "--help")
    assert answer.code == 0 and f"\n  yurt {verb}" in answer.out.partition("Examples:")[2]


# Plans, without a reachable site.


@pytest.fixture
def offline(user: User, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> User:
    """A user whose site is probed but unreachable; a fake `ssh` records that it was called."""
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "contexts.yaml").write_text(CONTEXTS)
    monkeypatch.setenv("YURT_CONFIG_HOME", str(tmp_path / "config"))
    kept.save(NOWHERE, msgspec.structs.replace(FACTS, probed_at=time.time()))
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "ssh").write_text(f"#!/bin/sh\necho called >> {tmp_path}/called\nexit 255\n")
    (tmp_path / "bin" / "ssh").chmod(0o755)
    user.environment |= {"PATH": f"{tmp_path}/bin:{os.environ['PATH']}", "YURT_CONTEXT": "big"}
    return user


def planned(user: User, *words: str) -> dict[str, Any]:
    answer = user.quick("run", "--dry-run", "--json", *words)
    assert answer.code == 0, answer
    assert answer.json["kind"] == "plan" and user.contents() == []
    assert not (user.home / "called").exists(), "a dry run connects to no site"
    found: dict[str, Any] = {**answer.json["data"], "warnings": answer.json["warnings"]}
    return found


def options(view: dict[str, Any]) -> list[str]:
    text: str = view["submitted_as"]
    return text.removeprefix("sbatch ").removesuffix(" job.sh NONCE").split()


def test_a_size_is_the_same_in_an_error_and_in_a_plan(user: User) -> None:
    with (user.project / "large.bin").open("wb") as file:
        file.truncate(60_000_000)
    assert said(user.quick("run", "true"), 2) == "'large.bin' is 60 MB; the limit for a code file is 50 MB"
    assert said(user.quick("run", "--largest-file=59", "true"), 2).endswith("the limit for a code file is 59 MB")
    shown = user.quick("run", "--largest-file=60", "--dry-run", "true")
    assert shown.code == 0 and "(2 files, 60 MB)" in shown.out, shown


def test_a_dry_run_submits_nothing_and_shows_the_plan(offline: User) -> None:
    view = planned(offline, "--gpus", "0", "--var", "A=it's", "train.py", "--", "--lr", "0.1")
    run = view["run"]
    assert run["context"] == "big" and run["params"] == {"lr": 0.1} and run["command"] == ["train.py", "--lr", "0.1"]
    assert run["folder"].startswith("/scratch/alice/yurt/projects/proj-") and run["code"]["files"] == 1
    assert "\nset -- \"$@\" 'python' 'train.py' '--lr' '0.1'\n" in view["data"]
    assert f"\nrun={run['folder']}\n" in view["script"] and "\nexport A='it'\"'\"'s'\n" in view["data"]
    assert (
        set(view["uploads"]) == {"code", "run.json", "plan.json", "job.sh", "data", "params.json"}
        and view["warnings"] == []
    )
    sources = {each["key"]: each["source"] for each in run["settings"]}
    assert sources["time"] == "contexts.yaml:7" and sources["variables"] == "flag"
    people = offline("run", "--dry-run", "train.py")
    assert people.code == 0 and people.err == ""
    for part in ("nothing was submitted", "# folder: /scratch/alice/yurt/projects/proj-", "# --- job.sh", "# --- data"):
        assert part in people.out
    assert "# time: 2h (contexts.yaml:7)\n" in people.out and "# sbatch --job-name=yurt-" in people.out
    assert "environment() {" in people.out and "set -- \"$@\" 'python' 'train.py'" in people.out
    assert (
        len(people.out.splitlines()) <= 40 and "# From here on the script is the same for every run." not in people.out
    )
    full = offline("-v", "run", "--dry-run", "train.py").out
    hidden = len(view["script"].splitlines())
    assert f"# job.sh has {hidden} lines; see all of it with `yurt -v run --dry-run …`\n" in people.out
    assert "# From here on the script is the same for every run." in full and len(full.splitlines()) > hidden


def test_a_dry_run_stays_short(offline: User) -> None:
    variables = [word for number in range(50) for word in ("--var", f"V{number}=x")]
    (offline.project / "job.sbatch").write_text("#!/bin/sh\n#SBATCH --mem=1G\nmodule load x\n")
    out = offline.quick("run", "--dry-run", *variables, "--module", "gcc", "job.sbatch").out
    assert "#SBATCH --mem=1G\n" in out and "  load_module gcc\n" in out and " more lines\n" in out
    assert len(out.splitlines()) <= 45
    assert offline.contents() == [] and not (offline.home / "called").exists()


def test_a_dry_run_of_a_sweep_shows_its_tasks(offline: User) -> None:
    variables = [word for number in range(50) for word in ("--var", f"V{number}=x")]
    done = offline.quick("run", "--dry-run", "--grid", "lr=0.1,0.01", "--grid", "n=1..3", *variables, "train.py")
    first, *lines = done.out.splitlines()
    assert re.fullmatch(r"# sweep s\S+ on big: 6 tasks; nothing was submitted", first), first
    at = lines.index("# task 0: lr=0.1 n=1")
    assert lines[at + 1 : at + 4] == ["# task 1: lr=0.1 n=2", "# task 2: lr=0.1 n=3", "# … 3 more tasks"]
    assert len(lines) <= 45
    assert planned(offline, "--grid", "n=1..2", "train.py")["sets"] == [{"n": 1}, {"n": 2}]
    assert planned(offline, "train.py")["sets"] == []
    (offline.project / "array.sbatch").write_text("#!/bin/sh\n#SBATCH --array=0-3\ntrue\n")
    out = offline.quick("run", "--dry-run", "array.sbatch").out
    assert ": 4 tasks; nothing was submitted\n" in out and "# task 0: array_task_id=0\n" in out


def test_impossible_requests_fail_without_querying_the_site(offline: User) -> None:
    for words, sentence in (
        (["--time", "2d"], "time 2d exceeds the maximum of partition 'main', 1d"),
        (["--partition", "shrot"], "partition 'shrot' not found; did you mean 'short'?"),
        (["--mem", "9G"], "no node of partition 'main' has 9G of memory; at most 8000M"),
        (["--cpus", "9"], "no node of partition 'main' has 9 cores; at most 8"),
        (["--gpus", "1"], "partition 'main' has no GPUs"),
        (["-t", "2-0"], "time 2d exceeds the maximum of partition 'main', 1d"),
        (["-c", "9"], "no node of partition 'main' has 9 cores; at most 8"),
        (["-c", "5", "--mem-per-cpu", "2G"], "no node of partition 'main' has 10G of memory; at most 8000M"),
        (["--gpus-per-node", "1"], "partition 'main' has no GPUs"),
        (["--gres", "gpu:1,lustre:1"], "partition 'main' has no GPUs"),
    ):
        assert said(offline.quick("run", *words, "train.py"), 5) == f"big: {sentence}"
    assert offline.contents() == [] and not (offline.home / "called").exists()


def test_a_site_without_a_route_is_not_tried_again_for_a_minute(offline: User) -> None:
    ssh, called = offline.home / "bin" / "ssh", offline.home / "called"
    said = "ssh: connect to host big.example port 22: No route to host"
    ssh.write_text(f"#!/bin/sh\necho called >> {called}\necho '{said}' >&2\nexit 255\n")
    first = offline.quick("run", "true")
    assert first.code == 0 and "No route to host" in first.err and "is saved" in first.err, first
    calls = called.read_text()
    looked = offline.quick("ps")
    assert re.search(r"^yurt: warning: big did not respond at \d\d:\d\d:\d\d", looked.err, re.M), looked
    assert "did not respond" in offline.quick("run", "true").err and called.read_text() == calls
    for words in (["login", "big"], ["context", "probe", "big"]):
        tried = offline.quick(*words)
        assert tried.code == 4 and "No route to host" in tried.err, tried


def test_a_cancellation_that_is_not_sent_yet_is_shown(offline: User) -> None:
    run = offline.quick("run", "--json", "true").json["data"]["run"]["id"]
    with Store(str(offline.home / "data" / "yurt.db")) as index:
        index.change([run], lambda _run, status: msgspec.structs.replace(status, state="queued", attempts=1))
    assert offline.quick("cancel", run).code == 4
    assert offline.quick("ps", "--json").json["data"][0]["reason"] == CANCEL_NOT_SENT
    assert "the next yurt command that reaches big cancels it" in offline.quick("show", run).out
    assert CANCEL_NOT_SENT in offline.quick("ps", "--wide").out
    with Store(str(offline.home / "data" / "yurt.db")) as index:
        index.change([run], lambda _run, status: msgspec.structs.replace(status, state="running"))
    for verb in ("show", "why"):
        assert CANCEL_NOT_SENT in offline.quick(verb, run).out


def test_a_pipe_in_the_project_is_a_warning(user: User) -> None:
    for name in ("a", "b", "c", "d", "e"):
        os.mkfifo(user.project / name)
    done = user.quick("run", "--wait", "true")
    assert done.code == 0
    assert "left out of the snapshot, because they are pipes, sockets or devices: a, b, c and 2 more\n" in done.err


SBATCH = """\
#!/bin/bash
#SBATCH --time=10 -c 4
#SBATCH --mem-per-cpu=1G
#SBATCH -C slow
#SBATCH --output=mine.txt

srun python train.py "$@"
"""


def test_a_script_with_sbatch_lines(offline: User) -> None:
    (offline.project / "job.sbatch").write_text(SBATCH)
    view = planned(offline, "job.sbatch", "--", "--lr", "1")
    assert view["script"].splitlines()[:5] == ["#!/bin/sh", *SBATCH.splitlines()[1:5]]
    assert "'/bin/bash' 'job.sbatch' '--lr' '1'" in view["data"]
    # #SBATCH lines of the script override the same settings of the context.
    given = options(view)
    assert "--partition=main" in given and "--account=lab" in given
    for prefix in ("--time", "--cpus-per-task", "--mem", "--constraint"):
        assert not any(option.startswith(prefix) for option in given), prefix
    assert "\nlimit=600 # seconds\n" in view["script"], "job.sh does not contain the time limit"
    assert view["warnings"] == [] and 'link_log "$4" out.log mine.txt\njoin_streams\n' in view["data"]
    assert "--output=out.log" in given
    # Options of yurt override them.
    given = options(planned(offline, "--time", "30m", "--mem", "2G", "--constraint", "new", "job.sbatch"))
    assert {"--time=30", "--mem=2048M", "--constraint=new"} <= set(given)
    assert not any(option.startswith("--cpus-per-task") for option in given)


def test_a_script_with_sbatch_lines_starts_its_tasks_itself(offline: User) -> None:
    (offline.project / "job.sbatch").write_text("#!/bin/sh\n#SBATCH --nodes=2\nsrun hostname\n")
    assert "\nlauncher=\n" in planned(offline, "--ntasks", "4", "job.sbatch")["script"]
    assert "\nlauncher=srun\n" in planned(offline, "--ntasks", "4", "train.py")["script"]
    assert "\nlauncher=srun\n" in planned(offline, "--nodes", "2", "train.py")["script"]


def test_nodes_of_a_context(offline: User) -> None:
    """The key `nodes`, as in mrunner. A flag overrides it and the same sbatch option of the context."""
    file = offline.home / "config" / "contexts.yaml"
    file.write_text(CONTEXTS + "    nodes: 2\n")
    view = planned(offline, "train.py")
    assert "--nodes=2" in options(view) and "\nlauncher=srun\n" in view["script"]
    assert "--nodes=1" in options(planned(offline, "--nodes", "1", "train.py"))
    file.write_text(CONTEXTS.replace("{constraint: fast}", "{constraint: fast, nodes: 2, p: short, c: 1}"))
    assert {"--nodes=2", "--partition=short"} <= set(options(planned(offline, "train.py")))
    given = options(planned(offline, "--nodes", "1-2", "-p", "main", "--cpus", "3", "train.py"))
    assert {"--nodes=1-2", "--partition=main", "--cpus-per-task=3", "--constraint=fast"} <= set(given) and len(
        set(given)
    ) == len(given)
    both = options(planned(offline, "--nodes", "1", "--sbatch-option", "nodes=3", "train.py"))
    assert "--nodes=3" in both and "--nodes=1" not in both


def test_options_of_sbatch(offline: User) -> None:
    """They have the same effect as with sbatch, and override other settings of the same resource in the context."""
    words = ["-p", "short", "-A", "other", "-t", "1:30", "-c", "3", "-N", "2", "-n", "4", "-J", "fit", "-w", "n1"]
    view = planned(offline, *words, "-x", "n7", "--ntasks-per-node", "2", "--mem-per-cpu", "1.5G", "train.py")
    assert view["run"]["name"] == "fit" and "\nlauncher=srun\n" in view["script"]
    assert {
        *("--partition=short", "--account=other", "--time=2", "--cpus-per-task=3", "--nodes=2", "--ntasks=4"),
        *("--nodelist=n1", "--exclude=n7", "--ntasks-per-node=2", "--mem-per-cpu=1536M"),
    } <= set(options(view))
    assert not any(each.startswith("--mem=") for each in options(view)), "sbatch refuses --mem with --mem-per-cpu"
    assert "\nlauncher=srun\n" in planned(offline, "--ntasks-per-node", "2", "train.py")["script"]
    file = offline.home / "config" / "contexts.yaml"
    file.write_text(CONTEXTS.replace("mem: 4G", "gpu: 1").replace("fast}", "fast, mem-per-cpu: 1G}"))
    given = options(planned(offline, "--mem", "2G", "--gres", "lustre:1", "train.py"))
    assert "--mem=2048M" in given and "--gres=lustre:1" in given
    assert not any(each.startswith("--mem-per-cpu") for each in given)


def test_the_prolog_of_a_context(offline: User) -> None:
    file = offline.home / "config" / "contexts.yaml"
    file.write_text(CONTEXTS + "    prolog_cmd: |\n      export A=1\n      source ~/setup.sh\n")
    assert (
        "environment() { # from your context and your flags\n  export A=1\n  source ~/setup.sh\n}"
        in (planned(offline, "train.py")["script"])
    )


@pytest.mark.parametrize(
    ("name", "text", "mode", "started"),
    [
        ("a.py", "", 0o644, "'python' 'a.py'"),
        ("a.sh", "true\n", 0o644, "'sh' 'a.sh'"),
        ("a.sh", "#!/bin/bash -e\ntrue\n", 0o644, "'/bin/bash' '-e' 'a.sh'"),
        ("a", "#!/usr/bin/env python3\n", 0o755, "'./a'"),
        ("a", "#!/usr/bin/env python3\n", 0o644, "'/usr/bin/env' 'python3' 'a'"),
    ],
)
def test_how_a_file_is_started(offline: User, name: str, text: str, mode: int, started: str) -> None:
    (offline.project / name).write_text(text)
    (offline.project / name).chmod(mode)
    assert f'\nset -- "$@" {started}\n' in planned(offline, name)["data"]
    assert f'\nset -- "$@" {started}\n' in planned(offline, str(offline.project / name))["data"]


# Names of runs, and how runs are listed, with an index that the test creates.

NOW = 1_790_000_000.0


def listed(user: User) -> list[str]:
    """Create an index of runs in several states and return their ids."""
    made: list[tuple[str, State, str, dict[str, Any], list[str], str]] = [
        ("1nfaaaa-aaaa1", "failed", "local", {"lr": 0.1, "fast": True}, ["paper"], "first"),
        ("1nfaaab-bbbb2", "completed", "local", {"lr": 0.2}, ["paper", "x y"], ""),
        ("1nfaaac-aaaa3", "completed", "old", {"text": "it's"}, [], "with a name that is quite long, and goes on"),
        ("1nfbbbb-cccc4", "lost", "local", {}, [], "日本語の長い名前 🦜 ü"),
    ]
    index = Store(f"{user.home}/data/yurt.db")
    for at, (run, state, context, params, tags, name) in enumerate(made):
        record = Run(
            id=run,
            context=context,
            context_type="local",
            project="proj-0000",
            source="/home/me/proj",
            created=NOW + at,
            command=["train.py", "--data", "/a/very/long/path/of/some/data/set", "--lr", "0.1"],
            folder=f"/nowhere/{run}",
            name=name,
            params=params,
            tags=tags,
        )
        reason = "killed by signal 9 (KILL), which takes quite some words to say" if state == "failed" else ""
        job = "" if at == 3 else "9"
        index.add(record, Status(state=state, reason=reason, job=job, started=NOW + at, ended=NOW + at + 60))
    return [run for run, *_more in made]


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("1nfaaaa-aaaa1", "1nfaaaa-aaaa1"),
        ("1nfb", "1nfbbbb-cccc4"),
        ("1NFB", "1nfbbbb-cccc4"),
        ("aaaa3", "1nfaaac-aaaa3"),
        ("bb", "1nfaaab-bbbb2"),
        ("@last", "1nfbbbb-cccc4"),
    ],
)
def test_names_of_a_run(user: User, word: str, meant: str) -> None:
    listed(user)
    answer = user.quick("show", "--cached", "--json", word)
    assert answer.code == 0 and answer.json["data"]["run"]["id"] == meant


def test_an_ambiguous_name(user: User) -> None:
    listed(user)
    before = user.contents()
    for verb in ("show", "logs", "wait", "cancel"):
        assert (
            said(user.quick(verb, "1nfaaa"), 2)
            == "'1nfaaa' is ambiguous: it matches 3 runs: 1nfaaac-aaaa3, 1nfaaab-bbbb2, 1nfaaaa-aaaa1"
        )
        sentence = "'aaaa' is ambiguous: it matches 2 runs: 1nfaaac-aaaa3, 1nfaaaa-aaaa1"
        assert said(user.quick(verb, "aaaa"), 2) == sentence
    assert said(user.quick("cancel", "1nfb", "zzz"), 3) == "run 'zzz' not found"
    assert user.contents() == before


def test_an_ambiguous_job(user: User) -> None:
    """As after several labs: their jobs have the same numbers."""
    listed(user)
    done = user.quick("wait", "local:9")
    assert said(done, 2) == "'local:9' is ambiguous: it matches 2 runs"
    assert done.err.endswith("  hint: use one of `1nfaaab-bbbb2` or `1nfaaaa-aaaa1`\n"), "not what was typed"
    assert user.quick("show", "--cached", "old:9").code == 0
    done = user.quick("wait", "9")
    ids = "`1nfaaac-aaaa3`, `1nfaaab-bbbb2` or `1nfaaaa-aaaa1`"
    assert done.err.endswith(f"  hint: use one of {ids}\n"), "two of them are of one context"


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ([], [3, 2, 1, 0]),
        (["-n", "2"], [3, 2]),
        (["--filter", "state=completed"], [2, 1]),
        (["--filter", "state=completed", "--filter", "state=lost"], [3, 2, 1]),
        (["--filter", "state=completed", "-n", "1"], [2]),
        (["--filter", "context=old"], [2]),
        (["--context", "old"], [2]),
        (["--filter", "tag=paper"], [1, 0]),
        (["--filter", "tag=paper", "-n", "1"], [1]),
        (["--filter", "tag=x y"], [1]),
        (["--filter", "tag=paper", "--filter", "state=failed"], [0]),
        (["--filter", "lr=0.1"], [0]),
        (["--filter", "fast=true"], [0]),
        (["--filter", "text=it's"], [2]),
        (["--filter", "name=first"], [0]),
        (["--filter", "project=proj-0000"], [3, 2, 1, 0]),
        (["--filter", "project=proj"], [3, 2, 1, 0]),
        (["--filter", "project=pro"], []),
        (["--filter", "nosuch=1"], []),
        (["--all"], [3, 2, 1, 0]),
    ],
    ids=lambda value: " ".join(map(str, value)) or "all",
)
def test_filters(user: User, words: list[str], found: list[int]) -> None:
    ids = listed(user)
    answer = user.quick("ps", "--cached", "--json", *words)
    assert answer.code == 0 and answer.json["kind"] == "runs"
    assert [row["id"] for row in answer.json["data"]] == [ids[at] for at in found]


def width(line: str) -> int:
    """Return the number of terminal columns that a line takes."""
    return int(cell_len(re.sub("\033\\[[0-9;]*m", "", line)))


@pytest.mark.parametrize("columns", [46, 60, 80, 240])
def test_ps_fits_the_terminal(user: User, columns: int) -> None:
    ids = listed(user)
    child = user.spawn("ps", "--cached", columns=columns)
    child.expect(pexpect.EOF)
    lines = [line for line in child.before.split("\r\n") if line]
    assert len(lines) == 5 and "\033[31m" in child.before
    assert max(width(line) for line in lines) <= columns
    for run, line in zip(reversed(ids), lines[1:], strict=True):
        assert line.startswith(run if columns == 240 else run.partition("-")[2])
    titles = [title for title in ("name", "command", "reason") if title[:5] in lines[0]]
    assert titles == {46: ["name"]}.get(columns, ["name", "command", "reason"])
    assert ("quite some words to say" in child.before) == (columns == 240)


def test_a_run_does_not_take_longer_than_its_age(user: User) -> None:
    (run, *_others) = listed(user)
    with Store(f"{user.home}/data/yurt.db") as index:
        entry = index.get(run)
        assert entry is not None
        now = time.time()
        new = msgspec.structs.replace(entry.run, id="1nfcccc-dddd5", created=now)
        # A job records whole seconds, by the clock of its node.
        index.add(new, Status(state="completed", started=now, ended=now + 300, seconds=300.0))
    title, line = user.quick("ps", "--cached", "-n", "1").out.splitlines()
    row = dict(zip(title.split(), line.split(), strict=False))
    assert int(row["took"].rstrip("s")) <= int(row["age"].rstrip("s")) < 120


def test_ps_keeps_what_matters_at_80_columns(user: User) -> None:
    run = user.quick("run", "--wait", "--json", "sh", "-c", "exit 3", "train.py", "--lr", "0.1").json["data"]["run"]
    child = user.spawn("ps", "--cached", columns=80)
    child.expect(pexpect.EOF)
    title, line = (re.sub("\033\\[[0-9;]*m", "", each) for each in child.before.split("\r\n") if each)
    assert title.split() == ["run", "state", "age", "took", "command", "reason"], "all runs are on one context"
    assert line.split()[:2] == [run["id"].partition("-")[2], "failed"] and "sh -c 'exit 3' train.py --lr" in line
    assert user.quick("show", "--cached", line.split()[0]).code == 0
    assert run["id"] in user.quick("ps", "--cached").out, "a pipe gets the whole id"


def test_ps_in_a_pipe_is_complete_and_plain(user: User) -> None:
    listed(user)
    for words in (["ps", "--cached"], ["ps", "--cached", "--wide"]):
        answer = user(*words, TERM="xterm-256color", COLUMNS="60")
        assert answer.code == 0 and "\033" not in answer.out
        assert "which takes quite some words to say" in answer.out and "…" not in answer.out
    assert "/a/very/long/path" in answer.out and "paper,x y" in answer.out
    answer = user("show", "--cached", "1nfaaaa")
    assert "\033" not in answer.out and "lr: 0.1\n" in answer.out


def test_an_index_that_another_program_has_locked(user: User) -> None:
    """A run waits for it once."""
    assert user("run", "--wait", "true").code == 0
    other = sqlite3.connect(user.home / "data" / "yurt.db", isolation_level=None)
    other.execute("PRAGMA locking_mode = EXCLUSIVE")
    other.execute("BEGIN EXCLUSIVE")
    other.execute("DELETE FROM looks")
    done = user("run", "true", YURT_CLOCKS="slow=0.1 locked=0.5")
    other.close()
    assert done.code == 5 and done.err.count("is locked by another program") == 1, done


@pytest.mark.parametrize(
    ("memory", "used", "tasks", "said"),
    [
        (None, None, 0, "repeat it with more memory: `yurt retry 1nfaaaa-aaaa1 --mem 16G`"),
        (4096, None, 0, "repeat it with more memory: `yurt retry 1nfaaaa-aaaa1 --mem 8G`"),
        (40, 123, 0, "repeat it with more memory: `yurt retry 1nfaaaa-aaaa1 --mem 246M`"),
        (100, None, 3, "`yurt why 1nfaaaa-aaaa1` says how much memory they used, and how to repeat them with more"),
    ],
)
def test_a_run_without_enough_memory_says_what_to_type(
    memory: int | None, used: int | None, tasks: int, said: str
) -> None:
    run = Run(
        id="1nfaaaa-aaaa1",
        context="big",
        context_type="slurm",
        project="p",
        source="/p",
        created=0,
        command=["x"],
        folder="/f",
        tasks=tasks,
        resources=Resources(memory_mb=memory),
    )
    states = {"completed": 2, "out_of_memory": 1} if tasks else {}
    usage = Usage(memory_mb=used) if used else None
    assert memory_hint(run, "failed" if tasks else "out_of_memory", states, usage) == said
    assert memory_hint(run, "failed", {"failed": 3, **({"out_of_memory": 1} if tasks else {})}) == ""


# Complete runs.


def test_every_verb_prints_json(user: User) -> None:
    started = user("run", "--json", "train.py", "--", "--lr", "0.1")
    assert started.code == 0 and started.err == "" and started.json["kind"] == "run"
    run = started.json["data"]["run"]["id"]
    assert user.quick("wait", "--json", run).json["data"][0]["status"]["state"] == "completed"
    for words, kind in (
        (["ps"], "runs"),
        (["show", "-"], "run-shown"),
        (["wait", "-"], "runs-finished"),
        (["cancel", "-"], "runs-cancelled"),
        (["agent", "once"], "agent-round"),
        (["run", "--wait", "train.py"], "run"),
        (["run", "--follow", "train.py"], "run"),
    ):
        answer = user.quick(*words, "--json") if words[0] != "run" else user.quick("--json", *words)
        assert answer.code == 0 and answer.err == "" and len(answer.out.splitlines()) == 1, words
        assert set(answer.json) == {"yurt", "kind", "data", "warnings"} and answer.json["yurt"] == 1
        assert answer.json["kind"] == kind and answer.json["warnings"] == []
    (line,) = user.quick("logs", "--json", run).out.splitlines()
    assert json.loads(line)["data"] == {"run": run, "stream": "out", "line": "trained"}


def test_the_exit_code_is_the_outcome_of_the_run(user: User) -> None:
    failing = ["--no-snapshot", "sh", "-c", "echo out; echo err >&2; exit 9"]
    answer = user.quick("run", "-f", *failing)
    assert answer.code == 1 and "out\n" in answer.out
    assert answer.err.startswith("err\n") and answer.err.endswith(": exit code 9\n")
    assert user.quick("run", "--wait", *failing).code == 1
    assert user.quick("wait", "-").code == 1
    assert user.quick("run", *failing).code == 0
    assert user.quick("run", "--wait", "--no-snapshot", "true").code == 0
    assert user.quick("run", "-q", "-f", "--no-snapshot", "echo", "only this").out == "only this\n"
    assert user.quick("run", "--no-snapshot", "sh", "-c", "sleep 30").code == 0
    late = user.quick("wait", "-", "--timeout", "0.3", "--json")
    assert late.code == 4 and late.json["data"][0]["status"]["state"] in ("queued", "running")
    assert user.quick("cancel", "-").code == 0


def test_quiet_prints_only_the_id(user: User) -> None:
    for words in (["-q", "run"], ["run", "-q", "--wait"]):
        answer = user.quick(*words, "--no-snapshot", "true")
        run = user.quick("show", "-", "--json").json["data"]["run"]["id"]
        assert (answer.code, answer.out) == (0, f"{run}\n")


def test_logs(user: User) -> None:
    writing = "for i in 1 2 3; do echo out $i; echo err $i >&2; done; printf rest"
    runs = [user.quick("--json", "run", "--wait", "--no-snapshot", "sh", "-c", writing).json["data"]["run"]["id"]]
    whole = user.quick("logs", "-")
    assert (whole.out, whole.err) == ("out 1\nout 2\nout 3\nrest", "err 1\nerr 2\nerr 3\n")
    assert (user.quick("logs", "--out", "-").err, user.quick("logs", "--err", "-").out) == ("", "")
    tail = user.quick("logs", "--tail", "2", "-")
    assert (tail.out, tail.err) == ("out 3\nrest", "err 2\nerr 3\n")
    follow = user.quick("logs", "-f", "-")
    assert (follow.out, follow.err) == (whole.out, whole.err)
    runs.append(user.quick("--json", "run", "--wait", "--no-snapshot", "echo", "other").json["data"]["run"]["id"])
    for more in ([], ["-f"]):
        both = user.quick("logs", *more, *runs)
        assert sorted(both.out.splitlines()) == sorted(
            [*(f"[{runs[0]}] {line}" for line in ("out 1", "out 2", "out 3", "rest")), f"[{runs[1]}] other"]
        )


def test_json_of_a_finished_run_has_the_warnings_of_its_submission(user: User) -> None:
    found = user.quick("run", "--no-snapshot", "--wait", "--json", "--partition", "big", "false")
    assert found.code == 1 and "partition ignored: this machine has no scheduler" in found.json["warnings"]


def test_watch_prints_an_envelope_for_each_change(user: User) -> None:
    assert user("run", "--no-snapshot", "--name", "one", "sh", "-c", PATIENT).code == 0
    argv = [YURT, "ps", "--watch", "--json"]
    environment = {**os.environ, **user.environment}
    watching = subprocess.Popen(argv, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert watching.stdout is not None and watching.stderr is not None

    def until(state: str) -> dict[str, Any]:
        assert watching.stdout is not None
        while (found := json.loads(watching.stdout.readline()))["data"][0]["state"] != state:
            pass
        return dict(found)

    first = until("running")
    assert first["kind"] == "runs" and [row["name"] for row in first["data"]] == ["one"]
    with Store(str(user.home / "data" / "yurt.db")) as index:
        before = index.refreshed_at("local")
        eventually(lambda: index.refreshed_at("local") != before)
    (folder,) = user.home.glob("data/projects/*/runs/*")
    (folder / "go").touch()
    (row,) = json.loads(watching.stdout.readline())["data"]
    assert row["state"] == "completed", "printed without a change"
    watching.send_signal(signal.SIGINT)
    rest, errors = watching.communicate(timeout=120)
    assert watching.returncode == 130 and "Traceback" not in errors
    assert all(json.loads(line)["kind"] == "runs" for line in rest.splitlines())


def test_a_run_uses_a_snapshot_of_the_code(user: User) -> None:
    (user.project / "train.py").write_text(
        "import os, pathlib\nprint(open('data.txt').read(), pathlib.Path('new').write_text('x'))\n"
        "open('data.txt', 'a') if 'COPIED' in os.environ else None\n"
    )
    (user.project / "data.txt").write_text("first")
    first = user.quick("--json", "run", "--wait", "train.py").json["data"]
    (user.project / "data.txt").write_text("second")
    second = user.quick("--json", "run", "--wait", "--copy", "--var", "COPIED=1", "train.py").json["data"]
    assert [each["status"]["state"] for each in (first, second)] == ["completed"] * 2
    assert user.quick("logs", first["run"]["id"]).out == "first 1\n" and user.quick("logs", "-").out == "second 1\n"
    assert first["run"]["code"]["tree"] != second["run"]["code"]["tree"]
    assert (
        not (user.project / "new").exists() and user.quick("ps", "--json").json["data"][0]["id"] == second["run"]["id"]
    )
    work = Path(second["run"]["folder"]) / "work"
    assert not (work / "data.txt").is_symlink() and (work / "new").read_text() == "x"
    assert not (Path(first["run"]["folder"]) / "work" / "data.txt").exists(), "links to the code are removed at the end"


# On the clusters.


@pytest.fixture
def standing(laptop: Laptop, monkeypatch: pytest.MonkeyPatch) -> User:
    monkeypatch.chdir(laptop.project)
    return laptop


@pytest.mark.lab
@pytest.mark.parametrize(
    ("context", "words", "sentence"),
    [
        ("beta", ["--time", "2d"], "time 2d exceeds the maximum of partition 'main', 1d"),
        (
            "beta",
            ["-p", "short", "--time", "5"],
            "time 5m exceeds the maximum of partition 'short', 2m; use partition main",
        ),
        ("beta", ["-p", "shrot"], "partition 'shrot' not found; did you mean 'short'?"),
        ("beta", ["--mem", "9G"], "no node of partition 'main' has 9G of memory; at most 8000M"),
        ("beta", ["--cpus", "99"], "no node of partition 'main' has 99 cores; at most 8"),
        ("beta", ["--gpus", "1"], "partition 'main' has no GPUs"),
        ("alpha", ["-A", "lba"], "you have no account 'lba'; did you mean 'lab'?"),
        ("alpha", ["--qos", "fwe"], "you cannot use QOS 'fwe'; did you mean 'few'?"),
        ("alpha", ["--gpus", "h100:1"], "GPU type 'h100' not found; did you mean 'a100'?"),
        ("alpha", ["--gpus", "a100:3"], "no node of partition 'main' has 3 GPUs; at most 2"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_impossible_requests_on_a_cluster(standing: User, context: str, words: list[str], sentence: str) -> None:
    before = standing.contents()
    assert said(standing.quick("--context", context, "run", *words, "train.py"), 5) == f"{context}: {sentence}"
    assert standing.contents() == before


@pytest.mark.lab
def test_beta_accepts_no_runs_in_the_home_folder(standing: User) -> None:
    before = standing.contents()
    answer = standing("--context", "beta", "run", "train.py", YURT_STORAGE_DIR="~")
    assert re.fullmatch(
        r"beta: the site does not accept jobs from the home folder \(.*\); set storage_dir to /lustre/scratch/alice",
        said(answer, 5),
    )
    assert standing.contents() == before


@pytest.mark.lab
def test_errors_of_sbatch(standing: User) -> None:
    before = standing.contents()
    answer = standing("--context", "beta", "run", "--sbatch-option", "constraint=nosuch", "train.py")
    assert said(answer, 5) == "beta: Slurm rejected the job: Invalid feature specification"
    answer = standing("--context", "alpha", "run", "--sbatch-option", "bogus", "train.py")
    assert said(answer, 5).startswith("alpha: Slurm rejected the job: unrecognized option '--bogus'")
    assert standing.contents() == before


@pytest.mark.lab
@pytest.mark.parametrize("context", ["alpha", "beta"])
def test_code_and_sbatch_lines_on_a_cluster(standing: User, context: str) -> None:
    """#SBATCH lines take effect; files of the code are read-only, but the script can create new ones."""
    (standing.project / "sub").mkdir(exist_ok=True)
    (standing.project / "sub" / "data.txt").write_text(f"for {context}\n")
    (standing.project / "job.sbatch").write_text(
        "#!/bin/bash\n#SBATCH --cpus-per-task=3 --time=7\n"
        'cat sub/data.txt; echo "$SLURM_CPUS_PER_TASK $1"; squeue -h -j "$SLURM_JOB_ID" -o %l\n'
        "touch new && echo new; echo x >> sub/data.txt && tail -n 1 sub/data.txt\n"
    )
    answer = standing("--context", context, "--json", "run", "--wait", "job.sbatch", "a b")
    assert answer.code == 0, answer
    logs = standing("logs", "-")
    assert logs.out.splitlines() == [f"for {context}", "3 a b", "7:00", "new", "x"], logs
    assert answer.json["data"]["run"]["code"]["tree"]


@pytest.mark.lab
def test_options_of_sbatch_on_a_cluster(standing: User) -> None:
    show = 'scontrol show job "$SLURM_JOB_ID"; echo "$SLURM_CPUS_PER_TASK $SLURM_MEM_PER_CPU $SLURM_NTASKS"'
    words = ["-p", "main", "-A", "lab", "-t", "3", "-c", "2", "-N", "1", "-n", "1", "-w", "n1", "-x", "n2", "-J", "fit"]
    answer = standing("--context", "alpha", "run", "-f", *words, "--mem-per-cpu", "100M", "sh", "-c", show)
    assert answer.code == 0 and answer.out.splitlines()[-1] == "2 100 1", answer
    for part in ("Partition=main", "Account=lab", "TimeLimit=00:03:00", "ReqNodeList=n1", "ExcNodeList=n2"):
        assert part in answer.out, part
    assert standing("show", "fit", "--json").json["data"]["run"]["name"] == "fit"
    gpus = 'echo "$SLURM_JOB_GPUS"; env | grep ^CUDA_VISIBLE'
    for option in (["--gres", "gpu:a100:2"], ["--gpus-per-node", "a100:2"]):
        answer = standing("--context", "alpha", "run", "-f", *option, "sh", "-c", gpus)
        assert answer.out.splitlines()[1:] == ["0,1", "CUDA_VISIBLE_DEVICES=0,1"], answer
    answer = standing("--context", "alpha", "run", "-f", "-N", "2", "--ntasks-per-node", "2", "hostname")
    assert sorted(answer.out.splitlines()[1:]) == ["n1", "n1", "n2", "n2"], answer
    # An option overrides a line of the script for the same resource.
    (standing.project / "job.sbatch").write_text('#!/bin/sh\n#SBATCH --mem-per-cpu=50M\necho "$SLURM_MEM_PER_NODE"\n')
    answer = standing("--context", "alpha", "run", "-f", "--mem", "200M", "job.sbatch")
    assert answer.out.splitlines()[1:] == ["200"], answer


@pytest.mark.lab
@pytest.mark.parametrize("context", ["alpha", "beta"])
@pytest.mark.slow("beta")
def test_the_ranks_of_several_tasks(standing: User, context: str) -> None:
    show = 'echo "$RANK $LOCAL_RANK $WORLD_SIZE $MASTER_PORT"; getent hosts "$MASTER_ADDR" > /dev/null && echo known'
    words = ["--nodes", "2", "--ntasks-per-node", "2"]
    answer = standing("--context", context, "run", "-f", *words, "--var", "MASTER_PORT=29500", "sh", "-c", show)
    assert answer.code == 0, answer
    lines = sorted(answer.out.splitlines()[1:])
    assert lines == ["0 0 4 29500", "1 1 4 29500", "2 0 4 29500", "3 1 4 29500", *["known"] * 4]
    # Two jobs on the same nodes have different ports.
    ports = set()
    for _each in range(2):
        answer = standing(
            "--context", context, "run", "-f", "--ntasks", "2", "sh", "-c", "echo $MASTER_PORT $WORLD_SIZE"
        )
        (line,) = set(answer.out.splitlines()[1:])
        port, world = line.split()
        assert world == "2" and 10000 <= int(port) < 30000
        ports.add(port)
    assert len(ports) == 2
    answer = standing("--context", context, "run", "-f", "sh", "-c", 'echo "${RANK-none}"')
    assert answer.out.splitlines()[1:] == ["none"], "one task has no rank"


@pytest.mark.lab
@pytest.mark.parametrize(
    ("words", "options", "lines"),
    [
        (["-N", "2", "--var", "MASTER_PORT=29500"], [], ["2 0 29500 same", "2 1 29500 same"]),
        (["-N", "2", "--var", "PET_MASTER_PORT=29501"], [], ["2 0 29501 same", "2 1 29501 same"]),
        (["-N", "2", "--var", "PET_NNODES=1"], [], ["1 - - other"] * 2),
        (["-N", "2"], ["--standalone"], ["- - - other"] * 2),
        (["-N", "2"], ["--nnodes", "1"], ["- - - other"] * 2),
        (["-N", "2", "--ntasks-per-node", "2"], [], ["- - - other"] * 4),
        (["-N", "1", "-n", "2"], [], ["- - - other"] * 2),
        (["-N", "1"], [], ["- - - same"]),
    ],
    ids=["nodes", "port", "one", "standalone", "nnodes", "several tasks", "one node", "one task"],
)
def test_the_variables_of_torchrun(standing: User, words: list[str], options: list[str], lines: list[str]) -> None:
    address = '$([ "${PET_MASTER_ADDR-}" = "${MASTER_ADDR-}" ] && echo same || echo other)'
    show = f'echo "${{PET_NNODES:--}} ${{PET_NODE_RANK:--}} ${{PET_MASTER_PORT:--}} {address}"'
    answer = standing("--context", "alpha", "run", "-f", *words, "sh", "-c", show, "torchrun", *options)
    assert answer.code == 0 and sorted(answer.out.splitlines()[1:]) == lines, answer


@pytest.mark.lab
def test_modules_and_variables_on_a_cluster(standing: User) -> None:
    (standing.project / "yurt.yaml").write_text(
        'modules_to_load: ["null"]\nafter_module_load_cmd: export LATER="$MINE later"\nvariables: {MINE: it\'s}\n'
    )
    try:
        answer = standing("--context", "alpha", "run", "-f", "sh", "-c", 'echo "$LATER"; echo "$LOADEDMODULES"')
        assert answer.code == 0 and answer.out.splitlines()[1:] == ["it's later", "null"], answer
        failing = standing("--context", "alpha", "run", "-f", "--module", "no/such", "echo", "started")
        assert failing.code == 1 and "yurt: module no/such not found\n" in failing.err
        assert "started" not in failing.out
    finally:
        (standing.project / "yurt.yaml").unlink()


@pytest.mark.lab
def test_watching_a_cluster_until_cancelled(standing: User) -> None:
    assert standing("--context", "alpha", "run", "--no-snapshot", "sleep", "300").code == 0
    eventually(lambda: standing("ps", "--json", "-n", "1").json["data"][0]["state"] == "running")
    gone = standing("cancel", "-", "--json")
    assert gone.code == 0 and gone.json["data"][0]["delivered"]
    done = standing("wait", "-", "--json", "--timeout", "240")
    assert done.code == 1 and done.json["data"][0]["status"]["state"] == "cancelled"
    again = standing("cancel", "-")
    assert again.code == 0 and "cancelled: it had already finished" in again.out


def test_the_state_of_a_finished_run_is_printed_once(user: User) -> None:
    run = user.quick("run", "--json", "true").json["data"]["run"]["id"]
    assert user.quick("wait", run).code == 0
    done = user.quick("cancel", run)
    assert (done.code, done.out) == (0, f"{run} completed: it had already finished\n")


def test_a_reason_that_repeats_the_state_is_not_shown(user: User) -> None:
    run = user.quick("run", "--json", "sh", "-c", PATIENT).json["data"]["run"]
    eventually((Path(run["folder"]) / "gen.1").exists)
    assert user.quick("cancel", run["id"]).code == 0
    waited = user.quick("wait", run["id"])
    assert re.fullmatch(rf"{run['id']} cancelled( after \d+s)?\n", waited.err), waited
    assert re.search(r"^state +cancelled$", user.quick("show", run["id"]).out, re.MULTILINE)
    assert user.quick("ps").out.count("cancelled") == 1
    with Store(str(user.home / "data" / "yurt.db")) as store:
        early = "cancelled before it started"
        store.change([run["id"]], lambda _run, status: msgspec.structs.replace(status, reason=early))
    assert re.search(rf"^state +{early}$", user.quick("show", run["id"], "--cached").out, re.MULTILINE)
    assert re.search(rf" cancelled .* {early}$", user.quick("ps", "--cached").out, re.MULTILINE)


def test_secrets_stay_out_of_the_snapshot(user: User) -> None:
    (user.project / ".env").write_text("TOKEN=hunter2\n")
    done = user.quick("run", "--wait", "sh", "-c", "cat .env || echo none", "--json")
    assert done.code == 0
    shown = user.quick("run", "--dry-run", "train.py")
    assert "left out of the snapshot, because they look like secrets: .env" in shown.err
    made = user("run", "-f", "ls", "-A").out
    assert ".env" not in made.splitlines()
    made = user("run", "-f", "--include", ".env", "cat", ".env").out
    assert "TOKEN=hunter2" in made.splitlines()


@pytest.mark.parametrize("folder", ["/", "home", "keys"])
def test_folders_with_keys_are_not_projects(user: User, folder: str) -> None:
    keys = user.home / "keys"
    (keys / ".ssh").mkdir(parents=True)
    place = {"/": Path("/"), "home": user.home, "keys": keys}[folder]
    refused = user("run", "true", cwd=str(place), HOME=str(user.home))
    assert "cannot take a snapshot of" in said(refused, 2)
    assert user("run", "--no-snapshot", "--wait", "true", cwd=str(place), HOME=str(user.home)).code == 0


def test_ctrl_c_says_whether_the_run_is_saved(user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    add = Store.add

    def interrupted(index: Store, *arguments: Any, after: bool) -> None:
        if after:
            add(index, *arguments)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Store, "add", partialmethod(interrupted, after=False))
        done = user.quick("run", "true")
        assert (done.code, done.err.strip()) == (130, "yurt: interrupted; nothing was submitted")
        patch.setattr(Store, "add", partialmethod(interrupted, after=True))
        done = user.quick("run", "true")
    (saved,) = (row["id"] for row in user.quick("ps", "--json").json["data"])
    assert done.code == 130 and f"interrupted; run {saved} is saved" in done.err
    user.quick("wait", saved)
