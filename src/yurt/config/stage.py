"""What a project stages on the disk of nodes: `stage` in yurt.yaml, or [tool.yurt.stage] in pyproject.toml."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from yurt.model.stage import NAME_RULE, StageRequest, is_name

if TYPE_CHECKING:
    from yurt.model.context_check import Fault

KEY = "stage"
EXAMPLE = "{inputs: {cifar: project:datasets/cifar}, outputs: [checkpoints]}"
_EXAMPLES = {"inputs": "{cifar: project:datasets/cifar}", "outputs": "[checkpoints]", "time": "2m"}


def read(body: Any, prefix: tuple[str, ...]) -> tuple[StageRequest, list[Fault]]:
    """Return what a project stages, and every fault."""
    if body is None:
        return StageRequest(), []
    from yurt.model.context_check import Fault, described, unknown

    if not isinstance(body, dict):
        problem = f"must be a mapping of inputs, outputs and time, not {described(body)}"
        return StageRequest(), [Fault(prefix, problem, f"{KEY}: {EXAMPLE}")]
    faults = [unknown((*prefix, str(key)), list(_EXAMPLES), _EXAMPLES, KEY) for key in body if key not in _EXAMPLES]
    inputs = _places(body.get("inputs"), (*prefix, "inputs"), faults)
    outputs = body.get("outputs")
    if isinstance(outputs, str):
        outputs = [outputs]
    if isinstance(outputs, list):
        outputs = _listed(outputs, (*prefix, "outputs"), faults)
    found = _places(outputs, (*prefix, "outputs"), faults, optional=True)
    for name in [name for name in found if name in inputs]:
        faults.append(Fault((*prefix, "outputs", name), "is also the name of an input; choose another name"))
    return StageRequest(inputs=inputs, outputs=found, seconds=_seconds(body.get("time"), prefix, faults)), faults


def _listed(names: Sequence[Any], path: tuple[str, ...], faults: list[Fault]) -> dict[Any, None]:
    from yurt.model.context_check import Fault, described

    for each in names:
        if not isinstance(each, str):
            faults.append(Fault(path, f"must be a list of names, not of {described(each)}", "outputs: [checkpoints]"))
    return dict.fromkeys(each for each in names if isinstance(each, str))


def _places(body: Any, path: tuple[str, ...], faults: list[Fault], *, optional: bool = False) -> dict[str, str]:
    """Return places by name, and add every fault. `optional`: a name alone is enough."""
    from yurt.model.context_check import Fault, described

    key, found = path[-1], dict[str, str]()
    example = f"{key}: {_EXAMPLES[key]}"
    if body is None:
        return {}
    if not isinstance(body, dict):
        what = "a list of names, or a mapping of names to places" if optional else "a mapping of names to places"
        faults.append(Fault(path, f"must be {what}, not {described(body)}", example))
        return {}
    for name, place in body.items():
        here = (*path, str(name))
        if not isinstance(name, str) or not is_name(name):
            faults.append(Fault(here, f"is not a valid name: {NAME_RULE}", example))
        elif place is None and optional:
            found[name] = ""
        elif not isinstance(place, str) or not place:
            faults.append(Fault(here, f"must be a place, not {described(place)}", f"{name}: project:{name}"))
        else:
            found[name] = place
    return found


def _seconds(value: Any, prefix: tuple[str, ...], faults: list[Fault]) -> int | None:
    if value is None:
        return None
    from yurt.model.context_check import Fault, described
    from yurt.model.resources import parse_seconds

    try:
        return parse_seconds(value)
    except ValueError as error:
        faults.append(Fault((*prefix, "time"), f"{error}, not {described(value)}", f"time: {_EXAMPLES['time']}"))
        return None
