"""The versions of Slurm that yurt supports and is tested with."""

from __future__ import annotations

from typing import get_args

import pytest

from yurt.backends.slurm import queries, states
from yurt.backends.slurm.versions import TESTED, caution, dotted
from yurt.cli.lab import SLURM_VERSIONS
from yurt.lab import versions
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
