"""The versions of Slurm that yurt supports and is tested with."""

from __future__ import annotations

import re
import subprocess
from typing import get_args

import pytest

from yurt.backends.slurm import queries, states, wordings
from yurt.backends.slurm.versions import TESTED, caution, dotted
from yurt.lab import versions
from yurt.lab.commands import SLURM_VERSIONS
from yurt.model.run import State


@pytest.mark.parametrize(
    ("version", "said"),
    [
        ("22.05.8", ""),
        ("slurm 20.11.9", ""),
        ("26.05.5", ""),
        ("23.02.7-1.el9", ""),
        ("", ""),
        ("unknown", ""),
        ("20.02.7", "Slurm 20.02.7 is older than 20.11, the oldest that yurt supports"),
        ("slurm 19.05.5", "Slurm 19.05.5 is older than 20.11"),
        ("26.11.0", "Slurm 26.11.0 is newer than 26.05, the newest that yurt is tested with"),
        ("27.05.0-0rc1", "Slurm 27.05.0 is newer than 26.05"),
    ],
)
def test_what_a_user_must_know(version: str, said: str) -> None:
    assert caution(version).startswith(said) and bool(caution(version)) == bool(said)


@pytest.mark.parametrize("table", [wordings.NOTHING, wordings.KILLED_FOR_MEMORY, wordings.TEST_SUBMISSION])
def test_each_wording_names_tested_versions(table: dict[str, str]) -> None:
    known = [dotted(each) for each in TESTED]
    for versions_of_it in table.values():
        named = re.findall(r"\d+\.\d+", versions_of_it)
        assert set(named) <= set(known) and (named or versions_of_it.startswith("all"))
    assert all("all" in said for said in table.values() if not re.search(r"\d", said))


@pytest.mark.parametrize(
    ("line", "killed"),
    [
        ("slurmstepd-n1: error: Step 7.0 exceeded virtual memory limit (9 > 5), being killed", True),
        ("slurmstepd: error: Job 7 exceeded memory limit (9 > 5), being killed", True),
        ("[2026-11-18T07:00:00.123] error: Job 7 exceeded memory limit (9 > 5), being killed", True),
        ("my program: error: it exceeded the memory limit", False),
        ("see: slurmstepd: error: Job 7 exceeded memory limit", False),
    ],
)
def test_lines_of_a_job_that_was_killed_for_its_memory(line: str, killed: bool) -> None:
    pattern = "|".join(wordings.KILLED_FOR_MEMORY)
    done = subprocess.run(["grep", "-q", "-i", "-E", pattern], input=line, text=True, check=False)
    assert (done.returncode == 0) == killed and "'" not in pattern


def test_the_lists_of_versions_agree() -> None:
    assert tuple(versions.RELEASES) == SLURM_VERSIONS == tuple(dotted(each) for each in TESTED)


@pytest.mark.parametrize("word", ["EXPEDITING", "POWER_UP_NODE", "", "42", "\N{SNOWMAN}", "REQUEUED_ELSEWHERE by 7"])
def test_new_words_are_unknown(word: str) -> None:
    """A state or reason of a version that nobody has seen is shown as it is; it never stops a poll."""
    assert states.live(word, "NewReason") in get_args(State)
    assert states.ended(word) is None
    assert word.split(" ", maxsplit=1)[0] in states.describe(word, "NewReason")
    assert "NewReason" in states.describe("PENDING", "NewReason")


@pytest.mark.parametrize("text", ["None", "Unknown", "N/A", "NONE", "", "2026-13-xx"])
def test_a_job_that_never_started(text: str) -> None:
    """22.05 prints Unknown, newer versions None."""
    assert queries.read_time(text) is None
