"""The reason of a run whose outputs were not copied back."""

from __future__ import annotations

import msgspec
import pytest

from yurt.model.run import Run, Stage, StageOutput, State, Status
from yurt.model.stage import with_lost_outputs
from yurt.model.state import Ending, Observation, next_status

RUN = Run(
    id="1nfjkdg-9k3rq",
    context="alpha",
    context_type="slurm",
    project="p",
    source="",
    created=0,
    command=["train"],
    folder="",
    stage=Stage(outputs=[StageOutput(name="tables"), StageOutput(name="model.pt")]),
)


def test_a_run_without_a_record_of_its_end() -> None:
    before = Status(state="running", started=1, node="n1")
    lost = Status(state="node_failed", started=1, node="n1", reason="its node failed")
    after = with_lost_outputs(RUN, before, lost)
    assert after.reason == "its node failed; outputs tables, model.pt were not copied back from the disk of n1"
    assert with_lost_outputs(RUN, after, after) == after
    never = msgspec.structs.replace(lost, started=None)
    assert with_lost_outputs(RUN, before, never) == never
    recorded = msgspec.structs.replace(lost, exit_code=1)
    assert with_lost_outputs(RUN, before, recorded) == recorded
    plain = msgspec.structs.replace(RUN, stage=None)
    assert with_lost_outputs(plain, before, lost) == lost


@pytest.mark.parametrize(
    ("ending", "state", "reason"),
    [
        (Ending(code=74, started=1, ended=2, unstaged="output x was not copied"), "failed", "output x was not copied"),
        (
            Ending(code=3, started=1, ended=2, unstaged="output x was not copied"),
            "failed",
            "exit code 3; output x was not copied",
        ),
        (
            Ending(code=143, signal=15, cause="cancelled", started=1, ended=2, unstaged="output x was not copied"),
            "cancelled",
            "cancelled; output x was not copied",
        ),
    ],
)
def test_what_its_job_recorded(ending: Ending, state: State, reason: str) -> None:
    after = next_status(Status(state="running"), Observation(ending=ending), 3)
    assert (after.state, after.reason) == (state, reason)
