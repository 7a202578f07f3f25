"""Inputs and outputs of a run on the disk of its node. Pure values, and the rules about them."""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

from yurt.model.run import Run, Stage, Status

NAME_RULE = "use letters, digits, '.', '_' and '-', starting with a letter or a digit"

TIME = 60
"""Seconds before the time limit that a run with outputs keeps for copying them, if they are not set."""

KILL_WAIT = 30
"""Seconds between TERM and KILL at the end of a job: the default of Slurm."""


def is_name(text: str) -> bool:
    """Whether a text can be the name of an input or an output: see NAME_RULE."""
    return re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", text) is not None


class StageRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What a user wants to stage, with the names of places as typed."""

    inputs: Mapping[str, str] = {}
    """Places by name."""
    outputs: Mapping[str, str] = {}
    """Places by name; empty for the outputs of the run."""
    seconds: int | None = None
    """Seconds before the time limit that are kept for copying outputs."""

    def __bool__(self) -> bool:
        return bool(self.inputs or self.outputs)


def merged(flags: StageRequest, project: StageRequest) -> StageRequest:
    """Return what flags and the project file stage; a name in flags replaces the same name of the project."""
    given = {*flags.inputs, *flags.outputs}
    return StageRequest(
        inputs={**{name: each for name, each in project.inputs.items() if name not in given}, **flags.inputs},
        outputs={**{name: each for name, each in project.outputs.items() if name not in given}, **flags.outputs},
        seconds=project.seconds if flags.seconds is None else flags.seconds,
    )


def windows(kill_wait: int) -> tuple[int, int]:
    """Return when, after TERM, the command is killed, and when copying stops, so that the end can still be recorded."""
    stop = kill_wait - 5 if kill_wait >= 15 else kill_wait * 2 // 3
    return max(1, kill_wait // 3), max(1, stop)


def with_lost_outputs(run: Run, before: Status, after: Status) -> Status:
    """Return a status that says so if a run ended without copying its outputs back."""
    stage: Stage | None = run.stage
    if stage is None or not stage.outputs or not after.final or before.final:
        return after
    if after.exit_code is not None or after.started is None:
        return after
    names = ", ".join(each.name for each in stage.outputs)
    what = f"output {names} was" if len(stage.outputs) == 1 else f"outputs {names} were"
    lost = f"{what} not copied back from the disk of {after.node or 'its node'}"
    return msgspec.structs.replace(after, reason=f"{after.reason}; {lost}" if after.reason else lost)


def lost_outputs(run: Run, status: Status) -> str:
    """Return what the reason of a run says about outputs that are not in their place; empty if they are."""
    if run.stage is None or not run.stage.outputs:
        return ""
    parts = status.reason.split("; ")
    at = next((at for at, part in enumerate(parts) if any(word in part for word in _LOST)), None)
    return "; ".join(parts[at:]) if at is not None else ""


_LOST = (" not copied back from ", " could not be copied to ", "cannot read output ")
