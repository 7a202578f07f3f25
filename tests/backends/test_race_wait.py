"""A job of a race that nobody answers gives its node back, and is held in the end: each start costs time on a node."""

from __future__ import annotations

import subprocess
from pathlib import Path

from yurt.backends import scripts

STUBS = """
kind=slurm race_here='' race_wait=0 asking=x job=7
read_written() { return 1; }
submit_next_job() { echo "begin=$later held=$held" >> queued; [ -z "$refused" ] && echo 8; }
job_id() { echo "$1"; }
timeout() { shift && "$@"; }
scontrol() { echo "$1" >> queued; [ "$refused" != both ]; }
give_back
echo "still here: $?"
"""


def starts(folder: Path, count: int, before: str = "", refused: str = "") -> list[str]:
    """Let so many jobs give their nodes back; return what they submitted, and what the last one printed."""
    text = scripts.text("race.sh", "job") + f"refused={refused}\n{before}\n" + STUBS
    for _start in range(count):
        done = subprocess.run(["sh", "-c", text], cwd=folder, capture_output=True, text=True, check=False)
    return [*(folder / "queued").read_text().splitlines(), done.stdout.strip()]


LATER = [f"begin=now+{seconds} held=" for seconds in (120, 240, 480, 960)]


def test_the_fifth_start_without_an_answer_leaves_a_held_job(tmp_path: Path) -> None:
    assert starts(tmp_path, 6) == [*LATER, "begin= held=yes", "begin= held=yes", ""]


def test_the_held_job_of_a_task_says_why_it_is_held(tmp_path: Path) -> None:
    """In the place where poll.sh looks: the first word of its comment. The rest is that of its group."""
    text = scripts.text("restart.sh", "job")
    stubs = 'plain_slurm() { :; }; with_shares() { "$@"; }; submit() { printf \'%s\\n\' "$@"; }; mask=077 job=7'
    words = f"sweep=/runs/s1 YURT_TASK_INDEX=3 held=$1 later=; {stubs}; submit_next_job 1"
    said = {}
    for held in ("yes", ""):
        done = subprocess.run(
            ["sh", "-c", f"{text}\n{words}", "sh", held], cwd=tmp_path, capture_output=True, text=True, check=True
        )
        said[held] = [line for line in done.stdout.splitlines() if line.startswith("--comment=")]
    assert said == {"yes": ["--comment=race_wait yurt:s1:1:3:0"], "": ["--comment=yurt:s1:1:3:0"]}


def test_a_job_that_asks_by_itself_is_never_held(tmp_path: Path) -> None:
    assert starts(tmp_path, 6, "reach() { :; }") == [*LATER, "begin=now+1920 held=", "begin=now+1920 held=", ""]


def test_a_node_that_may_not_submit_requeues_its_job(tmp_path: Path) -> None:
    found = starts(tmp_path, 5, refused="sbatch")
    assert found[1::2] == ["requeue"] * 4 + ["requeuehold"] and found[-1] == ""


def test_a_job_that_cannot_be_queued_again_ends(tmp_path: Path) -> None:
    """It waits four times more on its node, and no longer."""
    assert starts(tmp_path, 4, refused="both")[-1] == "still here: 0"
    assert starts(tmp_path, 1, refused="both")[-1] == "still here: 1"
