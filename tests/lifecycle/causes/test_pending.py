"""What pending runs wait for: every reason of Slurm, limits with their values, nodes, and runs before the queue."""

from __future__ import annotations

import re
from pathlib import Path

import click
import msgspec
import pytest

from tests.lifecycle.causes.test_failed import RUN
from yurt.backends.slurm import limits, states, waiting
from yurt.cli.root import root
from yurt.lifecycle.causes import amounts
from yurt.lifecycle.causes.pending import advice, pending
from yurt.model.hostlist import contains
from yurt.model.live import Live, LiveGpus, LiveJob, LiveNodes, LivePartition, NodeTrouble, Queue, Reservation
from yurt.model.pending import Awaited
from yurt.model.run import Status
from yurt.model.state import ENDING, NODE_FAILED, WAITS_FOR_SYNC
from yurt.model.waiting import SiteLimit, WaitingJob

HERE = Path(__file__).parent
ASKS = "its job on beta asks who was first"
DRAINED = "Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority partitions"
REASONS = (HERE / "reasons.txt").read_text().splitlines()[1:]
ASSOC_MGR = (HERE / "assoc_mgr.txt").read_text()
DATA = HERE.parent.parent / "src" / "yurt" / "why"

JOB = """JobId=2 JobName=yurt-x
   UserId=alice(61001) GroupId=alice(61001) MCS_label=N/A
   Priority=1 Nice=0 Account=lab QOS=few
   JobState=PENDING Reason={reason} Dependency=(null)
   RunTime=00:00:00 TimeLimit=02:00:00 TimeMin=N/A
   SubmitTime=1794975699 EligibleTime=1794975699
   Partition={partition} AllocNode:Sid=login:101
   ReqNodeList=n[1-2] ExcNodeList=(null)
   NumNodes=2 NumCPUs=4 NumTasks=1 CPUs/Task=4 ReqB:S:C:T=0:0:*:*
   TRES=cpu=4,mem=3G,node=2,billing=4,gres/gpu=2
   Features=(null) DelayBoot=00:00:00
   AdminComment=use QOS=long instead | see the wiki
   SystemComment=(null)
   WorkDir=/home/a JobId=7/x
"""
PARTITION = "PartitionName={name} QoS={qos} MaxTime={time} MaxNodes={nodes} MinNodes=0 MaxCPUsPerNode=UNLIMITED"


def read(reason: str, *partitions: str, partition: str = "main", assoc: str = ASSOC_MGR) -> WaitingJob:
    text = "\n".join(
        ["M partitions", *partitions, "M job", JOB.format(reason=reason, partition=partition), "M limits", assoc]
    )
    found = waiting.read("M", text, "2")
    assert found is not None
    return found


def said(reason: str, *partitions: str, partition: str = "main") -> list[str]:
    job = read(reason, *partitions, partition=partition)
    return [amounts.words(each, job) for each in job.limits]


@pytest.mark.parametrize("reason", REASONS)
def test_every_reason_has_words_and_advice(reason: str) -> None:
    assert not states.describe("PENDING", reason).startswith("Slurm reports")
    assert advice(reason)


def test_reasons_of_tomorrow() -> None:
    status = Status(state="queued", reason=states.describe("PENDING", "NewWord"), native="PENDING (NewWord)")
    made = pending(RUN, status, None, 0)
    assert (made.native, made.sentence, made.advice) == ("NewWord", "Slurm reports NewWord", "")


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("QOSMaxJobsPerUserLimit", "QOS few: at most 1 running job for each user; you have 1 running"),
        ("QOSMaxSubmitJobPerUserLimit", "QOS few: at most 4 submitted jobs for each user; you have 2 submitted"),
        ("QOSMaxCpuPerUserLimit", "QOS few: at most 2 CPUs for each user; you have 1 CPU, this run asks for 4 CPUs"),
        ("QOSGrpCpuLimit", "QOS few: at most 3 CPUs; 1 CPU in use, this run asks for 4 CPUs"),
        ("QOSMaxWallDurationPerJobLimit", "QOS few allows 1 h; this run asks for 2 h"),
        ("QOSMaxGRESPerJob", "QOS few: at most 1 GPU for each job; this run asks for 2 GPUs"),
        ("QOSMinCpuNotSatisfied", "QOS few: at least 8 CPUs for each job; this run asks for 4 CPUs"),
        ("MaxMemoryPerAccount", "QOS few: at most 2 GB for account lab; 50 MB in use, this run asks for 3 GB"),
        (
            "AssocGrpCPUMinutesLimit",
            "account lab: at most 60 000 CPU minutes; 59 900 CPU minutes used, this run asks for 480 CPU minutes",
        ),
        ("AssocGrpGRES", "account lab: at most 8 GPUs; 7 GPUs in use, this run asks for 2 GPUs"),
        ("AssocMaxJobsLimit", "your association with account lab: at most 5 running jobs for each user"),
    ],
)
def test_limits_with_their_values(reason: str, words: str) -> None:
    assert said(reason) == [words]


def test_limits_of_a_partition() -> None:
    short = PARTITION.format(name="short", qos="N/A", time="00:30:00", nodes="1")
    wide = PARTITION.format(name="wide", qos="N/A", time="UNLIMITED", nodes="UNLIMITED")
    assert said("PartitionTimeLimit", short, wide, partition="short") == [
        "partition short allows 30 min; this run asks for 2 h",
        "partition short: at most 1 node for each job; this run asks for 2 nodes",
    ]
    assert said("PartitionTimeLimit", short, wide, partition="wide") == []


def test_the_qos_of_a_partition_counts() -> None:
    part = PARTITION.format(name="main", qos="parted", time="UNLIMITED", nodes="UNLIMITED")
    assoc = "QOS=parted(3)\n    MaxTRESPJ=cpu=2\n"
    job = read("QOSMaxCpuPerJobLimit", part, assoc=assoc)
    assert [each.owner for each in job.limits] == ["QOS parted"]


def test_without_accounting() -> None:
    assert read("QOSMaxJobsPerUserLimit", assoc="").limits == []
    assert waiting.read("M", "M job\n", "2") is None


def test_the_request_and_comments() -> None:
    job = read("Resources")
    assert (job.minutes, job.nodes, job.account, job.qos) == (120, "n[1-2]", "lab", "few")
    assert job.requests == {"cpu": 4, "mem": 3072, "node": 2, "billing": 4, "gres/gpu": 2}
    assert (job.admin_comment, job.system_comment) == ("use QOS=long instead | see the wiki", "")


def test_hostile_words_are_only_words() -> None:
    for text in ("QOS=few(2)\n MaxTRESPJ=cpu=,=,x=y=3(z)\n GrpJobs=\n", "\x00QOS=\n", "QOS=few(2)\n GrpTRES=cpu=9Z(1)"):
        assert limits.read(text.splitlines(), "lab") in ([],)


@pytest.mark.parametrize(
    ("minutes", "words"), [(30, "30 min"), (60, "1 h"), (90, "1 h 30 min"), (2880, "2 days"), (0.2, "0 min")]
)
def test_times_are_exact(minutes: float, words: str) -> None:
    assert amounts.time(minutes) == words


@pytest.mark.parametrize(
    ("expression", "node", "there"),
    [
        ("n2", "n2", True),
        ("n[1-3,7],gpu5", "n7", True),
        ("n[1-3,7],gpu5", "n4", False),
        ("n[001-010]", "n007", True),
        ("n[001-010]", "n7", False),
        ("r[1-2]n[1-4]", "r2n3", True),
        ("n[", "n", False),
        ("", "n1", False),
    ],
)
def test_lists_of_nodes(expression: str, node: str, there: bool) -> None:
    assert contains(expression, node) is there


LIVE = Live(
    at=0,
    host="login",
    partitions=[LivePartition(name="main", nodes=LiveNodes(free_cpus=3, gpus=[LiveGpus(type="a", total=2, free=1)]))],
    troubles=[
        NodeTrouble(node="n2", state="drained", reason="bad DIMM", since=1.0, partitions=["main"]),
        NodeTrouble(node="x1", state="down", reason="other", partitions=["other"]),
    ],
    queue=Queue(
        mine=[
            LiveJob(job="8_[0-3]", state="pending", partition="main", tasks=4, place=2),
            LiveJob(job="9", state="pending", partition="main", place=9, reason="Resources", starts_at=50.0),
        ],
        mine_total=2,
    ),
    reservations=[Reservation(name="upgrade", maintenance=True), Reservation(name="class")],
)


def test_the_queue_and_the_nodes() -> None:
    queued = Status(state="queued", reason="waiting for free nodes", native="PENDING (Resources)", job="9")
    made = pending(RUN, queued, LIVE, 10.0)
    assert (made.place, made.yours_ahead, made.free_cpus, made.free_gpus, made.starts_at) == (9, 4, 3, 1, 50.0)
    assert [each.node for each in made.nodes] == ["n2"]
    assert [each.name for each in made.maintenance] == ["upgrade"]
    named = pending(RUN, queued, LIVE, 10.0, details=WaitingJob(job="9", reason="Resources", nodes="x[1-4]"))
    assert [each.node for each in named.nodes] == ["x1"]


def test_a_task_of_a_sweep() -> None:
    queued = Status(state="queued", reason="", job="8_2")
    assert pending(RUN, queued, LIVE, 10.0).place == 2


@pytest.mark.parametrize(
    ("status", "sentence", "help_"),
    [
        (Status(reason="alpha did not respond"), "alpha did not respond", "`yurt login alpha` tries now"),
        (Status(), "it is saved on this machine and not submitted yet", "`yurt login alpha` tries now"),
        (Status(unsure_since=1.0, attempts=1), "it may have been submitted", "submits it only if it did not"),
        (Status(state="submitting"), "it is being submitted", "ask again in a moment"),
        (
            Status(state="starting", reason=f"{ASKS}; alpha, which decides, does not respond"),
            ASKS,
            "its node back after",
        ),
        (Status(state="starting", reason=ASKS), ASKS, "the next yurt command tells it"),
        (Status(state="unknown", reason=NODE_FAILED), NODE_FAILED, "the site records its end within minutes"),
        (Status(state="unknown", reason=ENDING), ENDING, "the site records its end within minutes"),
        (Status(state="waiting", reason=WAITS_FOR_SYNC), WAITS_FOR_SYNC, "it starts after one that succeeds"),
        (Status(state="unknown"), "the site does not list its job", "`yurt ps` asks again"),
        (Status(reason="uploading its code (9.0 MB)"), "uploading its code", "ask again in a moment"),
        (Status(reason="its code (9.0 MB) is not uploaded yet"), "is not uploaded yet", f"`yurt wait {RUN.id}`"),
        (Status(reason="the disk of alpha is full"), "is full", "`yurt storage` shows what is full"),
        (Status(reason="run x, which it depends on, has not finished"), "run x, which", "when that run has completed"),
        (
            Status(state="queued", building=True, reason="its environment is being built (3 of 9)"),
            "its environment is being built",
            "`yurt env list`",
        ),
        (Status(state="queued", cancel_requested=True, reason="x"), "you cancelled it", "reaches alpha cancels it"),
    ],
)
def test_before_the_queue(status: Status, sentence: str, help_: str) -> None:
    made = pending(RUN, status, None, 0)
    assert sentence in made.sentence and help_ in made.advice


@pytest.mark.parametrize("reason", ["", "cannot write to /data: Permission denied"])
def test_this_machine_needs_no_login(reason: str) -> None:
    here = msgspec.structs.replace(RUN, context="local", context_type="local")
    made = pending(here, Status(reason=reason), None, 0)
    assert made.advice == f"the next yurt command submits it; `yurt wait {RUN.id}` tries now"


def test_a_run_that_waits_for_another() -> None:
    after = [Awaited(run="a", state="running"), Awaited(run="b", state=None)]
    assert pending(RUN, Status(state="queued"), None, 0, after=after).after == after


def test_a_run_that_follows_one_that_did_not_complete() -> None:
    never = [Awaited(run="a", state="cancelled")]
    made = pending(RUN, Status(state="queued"), None, 0, after=never)
    assert made.sentence == "it will not run, because run a, which it follows, did not complete: cancelled"
    assert "`yurt cancel 1aaaaaa-bbbbb`" in made.advice and "`yurt retry a`" in made.advice
    any_end = [Awaited(run="a", state="cancelled", ended=True)]
    assert pending(RUN, Status(state="queued"), None, 0, after=any_end).sentence == "waiting in the queue"


def test_nodes_that_are_drained() -> None:
    live = Live(
        at=1,
        host="h",
        troubles=[NodeTrouble(node="n1", state="drained", reason="disk broken", partitions=["main"])],
        queue=Queue(mine=[LiveJob(job="2", state="pending", partition="main", reason=DRAINED)]),
    )
    made = pending(RUN, Status(state="queued", job="2"), live, 0)
    assert made.sentence == "its nodes are down, drained or reserved for jobs of other partitions"
    assert [each.reason for each in made.nodes] == ["disk broken"] and "yurt cluster" in made.advice


def test_waiting_for_a_home_sync() -> None:
    live = Live(
        at=0, host="", queue=Queue(mine=[LiveJob(job="9", state="pending", partition="", reason="JobHeldUser")])
    )
    held = Status(state="held", native=f"PENDING ({states.UNSYNCED})", job="9", reason="waits for a home sync")
    assert "yurt home sync" in pending(RUN, held, live, 0).advice


def test_commands_in_the_advice_exist() -> None:
    """Each `yurt VERB` or `yurt GROUP VERB` in the data files is a verb of this yurt."""
    for file in DATA.glob("*.toml"):
        for words in re.findall(r"`yurt ([a-z]+)(?: ([a-z]+))?", file.read_text()):
            command = root.get_command(click.Context(root), words[0])
            assert command is not None, (file.name, words)
            if words[1] and isinstance(command, click.Group):
                assert command.get_command(click.Context(command), words[1]), (file.name, words)


def test_a_limit_in_words_without_a_job() -> None:
    limit = SiteLimit(owner="QOS a", each="user", resource="mem", value=2048, used=512)
    assert amounts.words(limit, None) == "QOS a: at most 2 GB for each user; you have 512 MB"


@pytest.mark.parametrize(
    ("start", "words"), [(1, "it runs where it starts first"), (2, "it is restarted where its checkpoints are")]
)
def test_what_a_race_waits_for(start: int, words: str) -> None:
    run = msgspec.structs.replace(RUN, race=RUN.id)
    found = pending(run, Status(state="requeued", start=start), None, 0)
    assert found.advice.startswith(words) and (start == 1 or f"`yurt retry {RUN.id}`" in found.advice)
