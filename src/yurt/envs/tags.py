"""Which wheels can be installed on a target, and which of them fits best. No I/O."""

from __future__ import annotations

from yurt.envs.target import Target


def ranks(target: Target) -> dict[str, int]:
    """Return the tags of wheels that can be installed on the target; the best one has the lowest number."""
    from packaging import tags

    major, minor = (int(each) for each in target.python_version.split("."))
    own = tags.cpython_tags((major, minor), platforms=target.pip_platforms)
    others = tags.compatible_tags((major, minor), f"cp{major}{minor}", target.pip_platforms)
    return {str(tag): number for number, tag in enumerate([*own, *others])}


def rank(file: str, ranks: dict[str, int]) -> int | None:
    """Return the rank of a wheel by its file name; None for one that cannot be installed."""
    from packaging.utils import InvalidWheelFilename, parse_wheel_filename

    try:
        own = parse_wheel_filename(file)[3]
    except InvalidWheelFilename:
        return None
    return min((ranks[str(tag)] for tag in own if str(tag) in ranks), default=None)
