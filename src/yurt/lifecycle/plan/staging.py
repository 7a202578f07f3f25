"""Resolves what a run stages on the disk of its node: paths of the site, and the time for copying outputs."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence

from yurt.backends.kinds import kind_of
from yurt.config import project
from yurt.errors import UserError
from yurt.model.context import Context
from yurt.model.facts import Facts
from yurt.model.run import Stage, StageInput, StageOutput
from yurt.model.stage import KILL_WAIT, NAME_RULE, TIME, StageRequest, is_name, merged


def from_options(inputs: Sequence[str], outputs: Sequence[str]) -> StageRequest:
    """Return what `--stage NAME=PLACE` and `--stage-out NAME[=PLACE]` request. UserError if one is invalid."""
    found_in, found_out = dict[str, str](), dict[str, str]()
    for option, texts, found in (("--stage", inputs, found_in), ("--stage-out", outputs, found_out)):
        for text in texts:
            name, _equals, place = text.partition("=")
            if not is_name(name):
                raise UserError(
                    f"{option}: '{name}' is not a valid name: {NAME_RULE}", code="usage", hint=_hint(option)
                )
            if option == "--stage" and not place:
                raise UserError(f"{option}: '{text}' is not NAME=PLACE", code="usage", hint=_hint(option))
            if name in found_in or name in found_out:
                raise UserError(f"{option}: the name '{name}' is given twice", code="usage", hint="keep one of them")
            found[name] = place
    return StageRequest(inputs=found_in, outputs=found_out)


def _hint(option: str) -> str:
    return f"for example: `{option} {'cifar=project:datasets/cifar' if option == '--stage' else 'checkpoints'}`"


def requested(flags: StageRequest) -> StageRequest:
    """Return what the project around the working directory and options stage."""
    found = project.find()
    return merged(flags, found.stage) if found is not None else flags


def resolved(wanted: StageRequest, context: Context, facts: Facts | None, minutes: int | None) -> Stage | None:
    """Return the staging of a run on a context; None if there is none. UserError if a place cannot be."""
    if not wanted:
        return None
    if not kind_of(context.type).has_host:
        hint = "remove `stage`, or choose another context with `--context`"
        raise UserError(f"{context.name} has no storage tiers, so it cannot stage files", code="usage", hint=hint)
    inputs = [
        StageInput(name=name, place=place, path=_path(context, facts, name, place))
        for name, place in wanted.inputs.items()
    ]
    outputs = [
        StageOutput(name=name, place=place, path=_target(context, facts, name, place) if place else "")
        for name, place in wanted.outputs.items()
    ]
    scheduler = kind_of(context.type).scheduler
    kill_wait = 0 if not scheduler else facts.kill_wait if facts is not None else KILL_WAIT
    return Stage(
        inputs=inputs,
        outputs=outputs,
        seconds=seconds_before(wanted.seconds, minutes) if outputs else 0,
        kill_wait=kill_wait,
    )


def seconds_before(wanted: int | None, minutes: int | None) -> int:
    """Return how long before the time limit the command is stopped. UserError if that is all its time."""
    if minutes is None:
        return wanted or TIME
    if wanted is not None and wanted >= minutes * 60:
        raise UserError(
            f"stage.time ({wanted} s) must be shorter than the time limit ({minutes * 60} s)",
            code="usage",
            hint=f"for example: `time: {min(TIME, minutes * 15)}s`, or a longer `--time`",
        )
    return wanted or min(TIME, minutes * 15)


def _target(context: Context, facts: Facts | None, name: str, text: str) -> str:
    """Return the path of an output. UserError if it is in yurt's own folder, whose contents yurt removes."""
    from yurt.contexts import folders

    path = _path(context, facts, name, text)
    own = folders.base_folder(context, facts) if facts is not None or kind_of(context.type).here else ""
    if own and f"{path}/".startswith(f"{own.rstrip('/')}/"):
        raise UserError(
            f"stage: '{text}' of output {name} is in yurt's own folder {own}",
            code="usage",
            hint="choose another folder, or leave the place out: the output is then with the run",
        )
    return path


def _path(context: Context, facts: Facts | None, name: str, text: str) -> str:
    from yurt.contexts import folders
    from yurt.model import place as names
    from yurt.storage.places import path_of

    if text[:1] in ("/", "~", "$"):
        path = posixpath.normpath(folders.expand(context, facts, text, f"stage {name}"))
        if not path.startswith("/") or not path.isprintable():
            raise UserError(f"stage: '{text}' of {name} is not a path of the site", code="usage", hint=_forms(name))
        return path
    place = names.parse(text)
    if place is None:
        problem = f"stage: '{text}' of {name} is neither TIER:PATH nor an absolute path of the site"
        raise UserError(problem, code="usage", hint=_forms(name))
    if place.context and place.context != context.name:
        raise UserError(
            f"stage: '{text}' of {name} is on {place.context}, but the run is on {context.name}",
            code="usage",
            hint=f"name a place of {context.name}, or copy it there first",
        )
    return path_of(context, facts, place)


def _forms(name: str) -> str:
    return f"for example: `{name}: project:{name}` or `{name}: /data/{name}`"
