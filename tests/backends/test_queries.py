"""Slurm's output and options: rows of squeue and sacct, errors of sbatch, its options, limits of sites.

Rows and errors were copied from the lab's clusters (Slurm 22.05).
"""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from yurt.backends.shell import ownership
from yurt.backends.slurm import check, options, queries, refusals, states
from yurt.backends.slurm.backend import SlurmBackend
from yurt.errors import RefusedError, UnreachableError
from yurt.model.facts import Account, Facts, NodeKind, Partition, Qos, Tier
from yurt.model.run import Plan, Resources, RestartPolicy, Run, RunRef
from yurt.model.state import Ending, Observation
from yurt.transport.base import Answer
from yurt.transport.ssh import SshHost

QUEUE = """\
67|CANCELLED|Priority|2026-11-15T06:38:10||yurt-cancel
59|COMPLETED|None|2026-11-15T06:38:09|n1|yurt-fine
57|FAILED|NonZeroExitCode|2026-11-15T06:38:09|n1|yurt-a b
61|PENDING|BeginTime|2026-11-15T07:38:08||yurt-begin
68|PENDING|Priority|N/A||yurt-qos
64|PENDING|Resources|2026-11-15T07:38:09||yurt-big
60|PENDING|DependencyNeverSatisfied|N/A||yurt-never
69_[1-3]|PENDING|JobHeldUser|N/A||yurt-array
56|PENDING|JobHeldUser|N/A||yurt-run2|x
70|PENDING|launch failed requeued held|2026-11-15T07:38:09||yurt-launch
71|PENDING|ReqNodeNotAvail, UnavailableNodes:n[1-2]|N/A||yurt-down
55|RUNNING|None|2026-11-15T06:38:09|n1|yurt-run1
62|RUNNING|None|2026-11-15T06:38:09|n[2-3]|yurt-two
72|COMPLETING|None|2026-11-15T06:38:09|n1|yurt-completing
73|SOME_NEW_WORD|None|2026-11-15T06:38:09|n1|yurt-later"""

RECORDS = """\
44|COMPLETED|2026-11-15T06:27:50|2026-11-15T06:27:50|n1|yurt-fine
46|CANCELLED by 61001|2026-11-15T06:27:52|2026-11-15T06:27:52|n1|yurt-by-hand
53|OUT_OF_MEMORY|2026-11-15T06:27:56|2026-11-15T06:27:56|n1|yurt-memory
55|RUNNING|2026-11-15T06:38:09|Unknown|n1|yurt-run1
64|PENDING|Unknown|Unknown|None assigned|yurt-big
67|CANCELLED by 61001|2026-11-15T06:38:10|2026-11-15T06:38:10|None assigned|yurt-cancel
80|FAILED|2026-11-15T06:38:09|2026-11-15T06:38:10|n1|yurt-pipe|d
81|NODE_FAIL|2026-11-15T06:38:09|2026-11-15T06:39:10|n1|yurt-node"""

AT = 1794724689.0
"""2026-11-15T06:38:09 UTC."""


def poll(*, queue: str = QUEUE, folders: str = "", records: str | None = RECORDS) -> str:
    last = "= silent" if records is None else f"= records\n{records}"
    return f"= queue\n{queue}\n= folders\n{folders}\n{last}\n"


def observed(text: str, *runs: str) -> dict[str, Observation]:
    return queries.read_poll(text, [RunRef(run, f"/runs/{run}", 0) for run in runs])


@pytest.mark.parametrize(
    ("run", "expected"),
    [
        ("begin", ("queued", "PENDING (BeginTime)", "waiting for its earliest start time", "61", "", None)),
        ("qos", ("queued", "PENDING (Priority)", "other jobs have higher priority", "68", "", None)),
        ("big", ("queued", "PENDING (Resources)", "waiting for free nodes", "64", "", None)),
        (
            "array",
            (
                "held",
                "PENDING (JobHeldUser)",
                "held; release it with `yurt release`",
                "69_[1-3]",
                "",
                None,
            ),
        ),
        (
            "run2|x",
            ("held", "PENDING (JobHeldUser)", "held; release it with `yurt release`", "56", "", None),
        ),
        (
            "never",
            (
                "queued",
                "PENDING (DependencyNeverSatisfied)",
                "its dependency can never be satisfied; it will not start",
                "60",
                "",
                None,
            ),
        ),
        (
            "launch",
            (
                "held",
                "PENDING (launch failed requeued held)",
                "its launch on the node failed",
                "70",
                "",
                None,
            ),
        ),
        (
            "down",
            (
                "queued",
                "PENDING (ReqNodeNotAvail, UnavailableNodes:n[1-2])",
                "a required node is down, drained or reserved",
                "71",
                "",
                None,
            ),
        ),
        ("run1", ("running", "RUNNING", "", "55", "n1", AT)),
        ("two", ("running", "RUNNING", "", "62", "n[2-3]", AT)),
        ("completing", ("running", "COMPLETING", "", "72", "n1", AT)),
        ("later", ("unknown", "SOME_NEW_WORD", "Slurm reports SOME_NEW_WORD", "73", "n1", AT)),
    ],
)
def test_a_row_of_the_queue(run: str, expected: tuple[object, ...]) -> None:
    seen = observed(poll(), run)[run]
    assert (seen.live, seen.native, seen.reason, seen.job, seen.node, seen.started) == expected
    assert seen.record is None


@pytest.mark.parametrize(
    ("run", "expected"),
    [
        ("cancel", ("cancelled", "CANCELLED", "cancelled outside yurt", "67", "")),
        ("by-hand", ("cancelled", "CANCELLED", "cancelled outside yurt", "46", "n1")),
        ("fine", ("completed", "COMPLETED", "", "44", "n1")),
        ("a b", ("failed", "FAILED", "its job failed and recorded no exit code", "57", "n1")),
        ("pipe|d", ("failed", "FAILED", "its job failed and recorded no exit code", "80", "n1")),
        ("memory", ("out_of_memory", "OUT_OF_MEMORY", "it used more memory than its limit", "53", "n1")),
        ("node", ("node_failed", "NODE_FAIL", "its node failed", "81", "n1")),
        ("nowhere", (None, "", "", "", "")),
    ],
)
def test_a_finished_job(run: str, expected: tuple[object, ...]) -> None:
    seen = observed(poll(), run)[run]
    assert (seen.record, seen.native, seen.reason, seen.job, seen.node) == expected
    assert seen.live is None and seen.records_known and not seen.gone


def test_times_of_records_are_kept_if_it_passed_its_gate() -> None:
    records = "7|FAILED|2026-11-15T06:38:09|2026-11-15T06:38:10|n1|yurt-r"
    passed = observed(poll(folders="r|abc.7|1||||", records=records), "r")["r"]
    assert (passed.started, passed.ended, passed.winner, passed.generation) == (AT, AT + 1, "abc.7", 1)
    never = observed(poll(folders="r||0||||", records=records), "r")["r"]
    assert (never.started, never.ended, never.generation) == (None, AT + 1, 0)


def test_the_most_advanced_of_several_jobs_counts() -> None:
    queue = (
        "5|PENDING|Priority|N/A||yurt-r\n6|RUNNING|None|2026-11-15T06:38:09|n1|yurt-r\n7|COMPLETED|None|N/A|n1|yurt-r"
    )
    seen = observed(poll(queue=queue), "r")["r"]
    assert (seen.live, seen.job) == ("running", "6")


def test_a_duplicate_that_stopped_at_the_gate_is_ignored() -> None:
    records = (
        "7|FAILED|2026-11-15T06:38:09|2026-11-15T06:38:10|n1|yurt-r\n"
        "8|COMPLETED|2026-11-15T06:38:09|2026-11-15T06:38:10|n1|yurt-r"
    )
    seen = observed(poll(folders="r|abc.7|1||||", records=records), "r")["r"]
    assert (seen.record, seen.job) == ("failed", "7")
    other = observed(poll(folders="r|abc.9|1||||", records=records), "r")["r"]
    assert other.record is None


def test_what_a_job_left_in_its_folder() -> None:
    ending = '{"code":3,"signal":0,"cause":"","started":1.0,"ended":2.0,"node":"n1","job":"7","restarts":0}'
    text = poll(
        folders=f"a|abc.7|2|abc.12.0.n1.9.9.b|timeout|1 done 1 2|{ending}\nb|gone|||||\n"
        'c|cancelled|0||||\nd|abc.8|1||||{"code":'
    )
    seen = observed(text, "a", "b", "c", "d")
    assert (seen["a"].winner, seen["a"].generation, seen["a"].stopped) == ("abc.7", 2, "timeout")
    assert (seen["a"].last_job, seen["a"].over) == ("12", "1 done 1 2")
    assert seen["a"].ending == Ending(code=3, started=1.0, ended=2.0, node="n1", job="7")
    assert seen["b"].gone and seen["b"].winner == "" and not seen["a"].gone
    assert seen["c"].winner == "cancelled"
    assert seen["d"].ending is None, "an incomplete file must not count"


def test_unchanged_rows_of_the_queue_are_omitted() -> None:
    queue = "5|RUNNING|None|2026-11-15T06:38:09|n1|yurt-a\n6|PENDING|Priority|||yurt-b\n7|PENDING|Priority|||yurt-c"
    first = observed(poll(queue=queue), "a", "b", "c")
    assert first["a"].mark and first["a"].mark != first["b"].mark
    refs = [RunRef(run, f"/runs/{run}", 0, first[run].mark) for run in "abc"]
    assert queries.read_poll(poll(queue=queue), refs) == {}
    later = poll(queue=queue.replace("6|PENDING|Priority", "6|PENDING|Resources").replace("7|PENDING", "8|PENDING"))
    assert set(queries.read_poll(later, refs)) == {"b", "c"}
    twice = poll(queue=f"{queue}\n9|PENDING|Priority|||yurt-b", folders="a|abc.5|1||||")
    assert set(queries.read_poll(twice, refs)) == {"a", "b"}


def test_sacct_does_not_respond() -> None:
    seen = observed(poll(records=None), "memory", "run1")
    assert not seen["memory"].records_known and seen["memory"].record is None
    assert seen["run1"].live == "running"


def test_empty_output_shows_nothing() -> None:
    for text in ("", "\n", "= queue\n", "noise\n= queue\n|||\n7|RUNNING\n"):
        (seen,) = observed(text, "r").values()
        assert (seen.live, seen.record, seen.ending, seen.winner) == (None, None, None, "")


@given(st.text(max_size=200), st.sampled_from(["queue", "folders", "records"]))
def test_any_output_is_parsed(noise: str, section: str) -> None:
    text = f"= queue\n7|RUNNING|None|N/A|n1|yurt-r\n= {section}\n{noise}\n"
    assert set(observed(text, "r", "q")) == {"r", "q"}


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("2026-11-15T06:38:09", AT), ("N/A", None), ("Unknown", None), ("", None), ("2026-11-15", None)],
)
def test_times(text: str, seconds: float | None) -> None:
    assert queries.read_time(text) == seconds


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (["7_[2-9%4]|PENDING|JobHeldUser", "7_1|RUNNING|None"], {"s1": "held; release it with `yurt release`"}),
        (["7_[2-9]|PENDING|JobHeldAdmin"], {"s1": "waiting for an administrator to release it"}),
        (["7_[2-9]|PENDING|Priority"], {}),
        (["7_3|PENDING|JobHeldUser", "7_[4-9]|PENDING|Priority"], {}),
        (["7_1|RUNNING|None"], {}),
    ],
)
def test_held_sweeps(rows: list[str], expected: dict[str, str]) -> None:
    queue = "\n".join(f"{row}|||yurt-s1+0" for row in rows) + "\n8|PENDING|JobHeldUser|||yurt-r1\n"
    refs = [RunRef("s1", "/sweeps/s1", 0, open="1-9"), RunRef("r1", "/runs/r1", 0)]
    assert queries.held_sweeps(f"= queue\n{queue}= folders\n", refs) == expected


def test_states_and_reasons() -> None:
    assert states.word("CANCELLED by 61001") == "CANCELLED" and states.word("COMPLETED+") == "COMPLETED"
    assert states.live("WHATEVER", "") == "unknown" and states.ended("WHATEVER") is None
    assert states.live("", "") == "unknown" and states.ended("") is None
    assert states.live("SUSPENDED", "None") == "running" and states.live("COMPLETED", "None") is None
    assert states.describe("PENDING", "QOSMaxJobsPerUserLimit") == "you have reached a limit of its QOS: running jobs"
    assert states.describe("PENDING", "AssocGrpMemLimit") == "your account has reached its limit: memory"
    assert states.describe("PENDING", "Whatever") == "Slurm reports Whatever"
    assert not set(states.LIVE) & set(states.ENDED)


# Errors of sbatch.


@pytest.mark.parametrize(
    ("errors", "code", "message"),
    [
        (
            "sbatch: error: invalid partition specified: nosuch\n"
            "sbatch: error: Batch job submission failed: Invalid partition name specified",
            "job-refused",
            "big: Slurm rejected the job: invalid partition specified: nosuch",
        ),
        (
            "sbatch: error: Batch job submission failed: Invalid account or account/partition combination specified",
            "job-refused",
            "big: Slurm rejected the job: Invalid account or account/partition combination specified",
        ),
        (
            "sbatch: error: beta: requeue is not allowed on this cluster\n"
            "sbatch: error: Batch job submission failed: Unspecified error",
            "job-refused",
            "big: Slurm rejected the job: beta: requeue is not allowed on this cluster",
        ),
        (
            "sbatch: unrecognized option '--bogus'\nTry \"sbatch --help\" for more information",
            "job-refused",
            "big: Slurm rejected the job: unrecognized option '--bogus'; Try \"sbatch --help\" for more information",
        ),
        (
            "sbatch: error: QOSMaxSubmitJobPerUserLimit\nsbatch: error: Batch job submission failed: Job violates "
            "accounting/QOS policy (job submit limit, user's size and/or time limits)",
            "submit-limit",
            "big: you have reached your job limit",
        ),
        (
            "sbatch: error: AssocGrpSubmitJobsLimit\nsbatch: error: Batch job submission failed: Job violates "
            "accounting/QOS policy (job submit limit, user's size and/or time limits)",
            "submit-limit",
            "big: you have reached your job limit",
        ),
        (
            "sbatch: error: QOSMaxWallDurationPerJobLimit\nsbatch: error: Batch job submission failed: Job violates "
            "accounting/QOS policy (job submit limit, user's size and/or time limits)",
            "job-refused",
            "big: Slurm rejected the job: QOSMaxWallDurationPerJobLimit",
        ),
        (
            "sbatch: error: QOSMinGRES\nsbatch: error: Batch job submission failed: Job violates "
            "accounting/QOS policy (job submit limit, user's size and/or time limits)",
            "job-refused",
            "big: Slurm rejected the job: QOSMinGRES",
        ),
        (
            "sbatch: error: Batch job submission failed: Unable to contact slurm controller (connect failure)",
            "slurm-not-responding",
            "big: Slurm does not respond: sbatch: error: Batch job submission failed: "
            "Unable to contact slurm controller (connect failure)",
        ),
        (
            "sbatch: error: Batch job submission failed: Socket timed out on send/recv operation",
            "slurm-not-responding",
            "big: Slurm does not respond: sbatch: error: Batch job submission failed: "
            "Socket timed out on send/recv operation",
        ),
        ("", "slurm-not-responding", "big: Slurm does not respond"),
    ],
)
def test_errors_of_sbatch(errors: str, code: str, message: str) -> None:
    error = refusals.classify("big", errors)
    assert (error.code, error.message) == (code, message)
    assert isinstance(error, UnreachableError if code == "slurm-not-responding" else RefusedError)


# Options of sbatch.


def planned(resources: Resources, more: dict[str, str | None], restart_policy: RestartPolicy | None = None) -> Plan:
    about: dict[str, Any] = {
        "context": "big",
        "context_type": "slurm",
        "project": "p",
        "source": "/p",
        "command": ["true"],
    }
    run = Run(
        id="r",
        created=0,
        folder="/a b/r",
        resources=resources,
        restart_policy=restart_policy or RestartPolicy(),
        **about,
    )
    return Plan(run=run, project_folder="/p", store="", words=[b"true"], native_options=more)


def test_options_of_a_run() -> None:
    resources = Resources(
        cpus=4, gpus=2, gpu_type="a100", memory_mb=4096, minutes=90, ntasks=2, partition="main", qos="q"
    )
    more = {"C": "fast", "--exclusive": None, "mem": "8G"}
    made = options.arguments(planned(resources, more))
    assert made == [
        "--job-name=yurt-r",
        "--comment=yurt:r",
        "--chdir=/a b/r",
        "--output=out.log",
        "--error=err.log",
        "--open-mode=append",
        "--partition=main",
        "--qos=q",
        "--time=90",
        "--cpus-per-task=4",
        "--mem=8G",
        "--gres=gpu:a100:2",
        "--ntasks=2",
        "--constraint=fast",
        "--exclusive",
        "--no-requeue",
    ]
    again = options.arguments(planned(Resources(gpus=1), {}, RestartPolicy(max_requeues=3)))
    assert again[-2:] == ["--gres=gpu:1", "--requeue"]
    assert "'--chdir=/a b/r'" in options.as_typed(made)


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        ("#SBATCH --time=10 --mem 1G", {"time": "10", "mem": "1G"}),
        ("#SBATCH -t10 -c 4 -J name", {"time": "10", "cpus-per-task": "4", "job-name": "name"}),
        ("#SBATCH --exclusive --hold", {"exclusive": None, "hold": None}),
        ('#SBATCH --comment="two words" # remark --mem=1', {"comment": "two words"}),
        ("#SBATCH --comment='not closed", {"comment": "'not"}),
        ("#SBATCH\t--time=5\r", {"time": "5"}),
        ("\n# comment\n\n#SBATCH -p a\n#SBATCH -p b", {"partition": "b"}),
        ("##SBATCH -p a\n #SBATCH -p b\n# SBATCH -p c", {}),
        ("echo\n#SBATCH -p a", {}),
        ("#SBATCH -a 1-3", {"array": "1-3"}),
    ],
)
def test_lines_of_a_users_script(lines: str, found: dict[str, str | None]) -> None:
    assert options.read_script(f"#!/bin/bash -e\n{lines}\n").options == found
    assert options.read_script(f"#!/bin/bash -e\n{lines}\n").interpreter == ["/bin/bash", "-e"]
    assert options.read_script(lines).interpreter == []


def test_options_taken_out_of_the_lines_of_a_script() -> None:
    text = "#SBATCH -a 1-3\n#SBATCH --mem 1G --array=1-3 --comment='two words' -t5\n#SBATCH  -p main # remark\n"
    found = options.without(options.read_script(text), ("array", "mem"))
    assert found.lines == ["#SBATCH '--comment=two words' -t5", "#SBATCH  -p main # remark"]
    assert found.options == {"comment": "two words", "time": "5", "partition": "main"}


@given(st.text(max_size=300))
def test_any_script_is_read(text: str) -> None:
    found = options.read_script(text)
    assert all(line.startswith("#SBATCH") and "\n" not in line for line in found.lines)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"job-name": "x"}, "--job-name cannot be used: yurt sets it itself"),
        ({"o": "x"}, "--output cannot be used: yurt sets it itself"),
        ({"--array": "1-3"}, "--array cannot be used: a run must be exactly one job"),
        ({"a": "1-3"}, "--array cannot be used: a run must be exactly one job"),
        ({"wrap": "x"}, "--wrap cannot be used: a run must be exactly one job"),
        ({"two words": "x"}, "'two words' is not an sbatch option"),
        ({"Nodes": "1"}, "'Nodes' is not an sbatch option"),
    ],
)
def test_options_that_users_cannot_set(more: dict[str, str | None], message: str) -> None:
    assert options.faults(more) == [message]
    assert options.faults({"constraint": "a", "exclusive": None, "C": "b"}) == []


@pytest.mark.parametrize(
    ("resources", "more", "several"),
    [
        (Resources(), {}, False),
        (Resources(ntasks=1), {"nodes": "1"}, False),
        (Resources(ntasks=2), {}, True),
        (Resources(), {"nodes": "2-4"}, True),
        (Resources(), {"N": "3"}, True),
        (Resources(), {"ntasks-per-node": "4"}, True),
        (Resources(), {"nodes": None, "exclusive": None}, False),
    ],
)
def test_when_srun_is_needed(resources: Resources, more: dict[str, str | None], several: bool) -> None:
    assert options.several_tasks(resources, more) is several


# Requests that a site cannot satisfy.

FACTS = Facts(
    probed_at=0,
    user="alice",
    host="login",
    partitions=[
        Partition(
            name="main",
            default=True,
            max_minutes=1440,
            nodes=[
                NodeKind(count=2, cpus=8, memory_mb=8000, gpu_type="a100", gpus=2),
                NodeKind(count=1, cpus=32, memory_mb=64_000),
            ],
        ),
        Partition(name="short", max_minutes=2, nodes=[NodeKind(count=1, cpus=8, memory_mb=8000)]),
        Partition(name="long", accounts=["rich"], nodes=[NodeKind(count=1, cpus=8, memory_mb=8000)]),
        Partition(name="broken", up=False),
    ],
    accounts=[Account(name="lab", default=True, qos=["normal", "few"]), Account(name="rich", qos=["normal"])],
    qos=[Qos(name="normal"), Qos(name="few"), Qos(name="admins")],
    home_refusal="not from /home",
    variables={"HOME": "/home/alice"},
    tiers=[
        Tier(name="scratch", variable="SCRATCH", path="/scratch/alice", free_mb=900),
        Tier(name="full", variable="F", path="/full", free_mb=1),
    ],
)


@pytest.mark.parametrize(
    ("resources", "folder", "messages"),
    [
        (Resources(), "/scratch/alice/yurt", []),
        (Resources(partition="main", cpus=32, minutes=1440, memory_mb=64_000), "/s", []),
        (Resources(partition="main,short"), "/s", []),
        (Resources(partition="mian"), "/s", ["partition 'mian' not found; did you mean 'main'?"]),
        (Resources(partition="main,shrot"), "/s", ["partition 'shrot' not found; did you mean 'short'?"]),
        (Resources(partition="zzz"), "/s", ["partition 'zzz' not found; use main, short, long or broken"]),
        (Resources(partition="broken"), "/s", ["partition 'broken' is down"]),
        (Resources(account="lba"), "/s", ["you have no account 'lba'; did you mean 'lab'?"]),
        (
            Resources(account="lab", partition="long"),
            "/s",
            ["account 'lab' cannot use partition 'long'; use account rich"],
        ),
        (Resources(account="lab", qos="fwe"), "/s", ["you cannot use QOS 'fwe'; did you mean 'few'?"]),
        (Resources(account="rich", qos="few"), "/s", ["you cannot use QOS 'few'; use normal"]),
        (
            Resources(minutes=2880),
            "/s",
            ["time 2d exceeds the maximum of partition 'main', 1d; use partition long or broken"],
        ),
        (
            Resources(minutes=3, partition="short"),
            "/s",
            ["time 3m exceeds the maximum of partition 'short', 2m; use partition main, long or broken"],
        ),
        (Resources(gpus=1, gpu_type="h100"), "/s", ["GPU type 'h100' not found; did you mean 'a100'?"]),
        (Resources(gpus=1, partition="short"), "/s", ["partition 'short' has no GPUs; use partition main"]),
        (Resources(gpus=3), "/s", ["no node of partition 'main' has 3 GPUs; at most 2"]),
        (Resources(cpus=64), "/s", ["no node of partition 'main' has 64 cores; at most 32"]),
        (
            Resources(cpus=16, gpus=1),
            "/s",
            ["no node of partition 'main' has 16 cores and the requested GPUs; at most 8"],
        ),
        (Resources(memory_mb=65_536), "/s", ["no node of partition 'main' has 64G of memory; at most 64000M"]),
        (
            Resources(),
            "/home/alice/yurt",
            ["the site does not accept jobs from the home folder (not from /home); set storage_dir to /scratch/alice"],
        ),
        (Resources(), "/home/alicette", []),
        (Resources(), "/full/yurt", ["/full, where run folders are stored, is full"]),
        (
            Resources(partition="mian", account="lba"),
            "/s",
            ["partition 'mian' not found; did you mean 'main'?", "you have no account 'lba'; did you mean 'lab'?"],
        ),
    ],
)
def test_requests_that_a_site_cannot_satisfy(resources: Resources, folder: str, messages: list[str]) -> None:
    assert check.faults(resources, FACTS, folder) == messages


def test_a_site_with_few_facts_forbids_nothing() -> None:
    resources = Resources(
        partition="x", account="y", qos="z", gpus=9, gpu_type="h100", cpus=1000, memory_mb=10**9, minutes=10**6
    )
    assert check.faults(resources, Facts(probed_at=0, user="a", host="h"), "/home/a") == []
    bare = msgspec.structs.replace(FACTS, partitions=[Partition(name="main", default=True)], accounts=[], qos=[])
    assert check.faults(msgspec.structs.replace(resources, partition="main", gpu_type=None), bare, "/s") == []


def test_pending_tasks_of_a_sweep_are_omitted() -> None:
    sweep = "s1nfkaf7-c1w10"
    queue = f"""\
9_[2-4,8-9%2]|PENDING|Priority|||yurt-{sweep}+0
12_[0-8:4]|PENDING|JobHeldUser|||yurt-{sweep}+100
9_5|RUNNING|None|2026-11-15T06:38:09|n1|yurt-{sweep}+0
9_6|COMPLETED|None|2026-11-15T06:38:09|n1|yurt-{sweep}+0"""
    folders = f"{sweep}.7|abcd.9_7|1|||x|"
    records = f"9_7|TIMEOUT|2026-11-15T06:27:50|2026-11-15T06:27:50|n1|yurt-{sweep}+0"
    ref = RunRef(sweep, f"/sweeps/{sweep}", 0.0, open="2-5,7-9,100-108", begun="3,104", offsets="0,100")
    found = queries.read_poll(poll(queue=queue, folders=folders, records=records), [ref])
    # 3 and 104 had started and are pending again; 6 is recorded as finished.
    assert sorted(found) == [f"{sweep}.{number}" for number in (104, 3, 5, 7)]
    assert (found[f"{sweep}.3"].live, found[f"{sweep}.3"].job) == ("queued", "9_3")
    assert (found[f"{sweep}.104"].live, found[f"{sweep}.104"].job) == ("held", "12_4")
    assert (found[f"{sweep}.5"].live, found[f"{sweep}.5"].node) == ("running", "n1")
    assert found[f"{sweep}.7"].record == "timeout"


def test_a_task_whose_launch_failed_is_reported() -> None:
    """Pending tasks are omitted, but not one that is held because its launch failed."""
    name = "yurt-s1nfj000-00005+0"
    queue = f"7_[2-4%2]|PENDING|Resources|||{name}\n7_1|PENDING|launch failed requeued held|||{name}"
    ref = RunRef("s1nfj000-00005", "/sweeps/s1nfj000-00005", 0, open="0-4")
    found = queries.read_poll(f"= queue\n{queue}\n", [ref])
    assert list(found) == ["s1nfj000-00005.1"]
    seen = found["s1nfj000-00005.1"]
    assert (seen.live, seen.job) == ("held", "7_1") and states.UNLAUNCHED in seen.native and seen.unlaunched


def test_an_answer_about_another_run_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """A site may answer anything to the cancellation of runs; yurt looks up what it asked for."""
    said = Answer(0, b"1nfkaf7-c1w10 ended\n- ended\n1nfkaf7-c1w11 cancelled\n", b"")
    monkeypatch.setattr(ownership, "run", lambda *_words, **_more: said)
    backend = SlurmBackend(SshHost("alpha", "alice@login.invalid"), lambda: True)
    asked = [RunRef("1nfkaf7-c1w10", "/scratch/yurt/projects/p-0000/runs/1nfkaf7-c1w10", 1.0)]
    assert backend.cancel_runs(asked) == {"1nfkaf7-c1w10": "ended"}


def test_accounting_that_hangs_is_not_asked_again_for_a_while(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("YURT_RUNTIME_DIR", f"/tmp/yt-accounting-{os.getpid()}")
    host = SshHost("alpha", "alice@login.invalid")
    file = Path(f"{host.master.socket}.accounting")
    asked, answers = list[str](), [b"= silent\n", b"= silent\n", b"= records\n"]

    def run(_script: str, accounting: str, *_more: str, **_how: object) -> Answer:
        asked.append(accounting)
        return Answer(0, b"= queue\n= folders\n" + answers[len(asked) - 1], b"", seconds=30.0)

    monkeypatch.setattr(host, "run", run)
    backend, ref = (
        SlurmBackend(host, lambda: True),
        RunRef("1nfkaf7-abcde", f"{tmp_path}/yurt/projects/p-0000/runs/1nfkaf7-abcde", 0.0),
    )
    for at in range(3):
        if at == 2:
            os.utime(file, (time.time() - 61, time.time() - 61))
        backend.observe([ref])
        assert file.exists() == (at < 2)
    assert asked == ["yes", "silent", "yes"]
    shutil.rmtree(file.parent)
