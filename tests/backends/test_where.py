"""Test submissions: the options and the input of where.sh, and the replies of several versions of Slurm."""

from __future__ import annotations

import pytest

from yurt.backends.slurm.where import common, lines, read
from yurt.model.run import Resources
from yurt.model.where import Answer, Ask, Question

ASK = Ask(partition="main")
NOW = "now 1794975712 2026-11-18T04:21:52"


def question(**changes: object) -> Question:
    resources = Resources(cpus=4, gpus=2, gpu_type="a100", minutes=720, partition="long", account="lab")
    return Question(**{"resources": resources, "folder": "/s/a", "asks": [ASK], **changes})  # type: ignore[arg-type]


def replied(text: str, ask: Ask = ASK) -> Answer:
    (found,) = read([NOW, f"reply 0 {text}"], [ask]).answers
    return found


@pytest.mark.parametrize(
    ("text", "seconds", "nodes"),
    [
        ("0 sbatch: Job 12 to start at 1794976070 using 4 processors on nodes n1 in partition main", 358, "n1"),
        ("0 sbatch: Job 14 to start at 1794975712 using 2 processors on nodes n[1-2] in partition main", 0, "n[1-2]"),
        # Without SLURM_TIME_FORMAT, times are local ones of the site.
        (
            "0 sbatch: Job 5 to start at 2026-11-18T05:21:52 using 4 processors on nodes n3 in partition main",
            3600,
            "n3",
        ),
        # Slurm 24.11 and 26.05
        ("0 sbatch: Job 2 to start at 1794975772 using 2 processors on nodes n[1-2] in partition main", 60, "n[1-2]"),
        ("0 sbatch: Job 2 to start at 1794975772 a using 2 processors on nodes n[1-2] in partition main", 60, "n[1-2]"),
        (
            "0 sbatch: Job 6 to start at 2026-11-18T05:21:52 a using 1 processors on nodes n1 in partition main",
            3600,
            "n1",
        ),
        # Before 20.11 the line has neither `nodes` nor the partition.
        ("0 sbatch: Job 9 to start at 1794975700 using 1 processors on n1", 0, "n1"),
        ("0 banner|sbatch: Job 7 to start at 1794975772 using 4 processors on nodes n1 in partition main|", 60, "n1"),
        ("0 sbatch: Job 7 to start at Unknown using 4 processors on nodes n1 in partition main", None, "n1"),
        ("0 something new", None, ""),
    ],
)
def test_a_start(text: str, seconds: float | None, nodes: str) -> None:
    assert replied(text) == Answer(ask=ASK, seconds=seconds, nodes=nodes)


REFUSALS = (  # of Slurm 24.11 and 26.05
    "Requested node configuration is not available",
    "Invalid account or account/partition combination specified",
    "Invalid qos specification",
    "Invalid feature specification",
    "Node count specification invalid",
    "More processors requested than permitted",
)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        *((f"1 allocation failure: {each}", each) for each in REFUSALS),
        (
            "1 allocation failure: Requested time limit is invalid (missing or exceeds some limit)",
            "Requested time limit is invalid (missing or exceeds some limit)",
        ),
        (
            "1 sbatch: error: invalid partition specified: nope|allocation failure: Invalid partition name specified",
            "Invalid partition name specified",
        ),
        (
            "1 sbatch: error: beta: change to $SCRATCH first|allocation failure: Unspecified error",
            "beta: change to $SCRATCH first",
        ),
        (
            "1 sbatch: error: Invalid generic resource (gres) specification",
            "Invalid generic resource (gres) specification",
        ),
        ("127 sh: sbatch: not found", "sbatch failed without a reason"),
    ],
)
def test_a_refusal(text: str, why: str) -> None:
    assert replied(text).refusal == why


def test_other_lines_are_ignored() -> None:
    found = read([NOW, "there 1", "there x", "reply 9 0 x", "reply", "noise"], [ASK])
    assert (found.now, found.answers, found.there) == (1794975712, [], {1})
    assert read([], [ASK]).now is None


def test_the_options_of_all_requests() -> None:
    more = {"constraint": "a&b", "hold": None, "comment": "x", "t": "5", "dependency": "afterok:1", "exclusive": None}
    made = common(question(options=more))
    assert made == [
        *("--chdir=/s/a", "--job-name=yurt-test", "--account=lab", "--cpus-per-task=4"),
        *("--constraint=a&b", "--time=5", "--exclusive"),
    ]


def test_the_requests() -> None:
    asks = [ASK, Ask(partition="main", minutes=60), Ask(partition="long", gpus=1), Ask(partition="x; rm -rf ~")]
    assert lines(question(asks=asks, paths=["/data/my set", "/a\nb"])).splitlines() == [
        "path 0 /data/my set",
        "ask 0 --partition=main --time=720 --gres=gpu:a100:2",
        "less 1 --partition=main --time=60 --gres=gpu:a100:2",
        "less 2 --partition=long --time=720 --gres=gpu:a100:1",
    ]
    assert lines(question(options={"gres": "gpu:1,lustre:1"})) == "ask 0 --partition=main --time=720\n"
