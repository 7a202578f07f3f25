"""The options of `yurt run` as Python keyword arguments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

from yurt.errors import UserError
from yurt.lifecycle.plan.request import flags_of, restart_policy_of
from yurt.model.settings import TABLE
from yurt.model.settings_row import Row


class Options(TypedDict, total=False):
    """The options of `yurt run --help`, with `_` in place of `-`."""

    name: str
    tags: Sequence[str]
    note: str
    cpus: int | str
    gpus: int | str
    mem: int | str
    mem_per_cpu: int | str
    gres: str
    time: int | str
    nodes: int | str
    ntasks: int | str
    ntasks_per_node: int | str
    partition: str
    account: str
    qos: str
    constraint: str
    nodelist: str
    exclude_nodes: str
    sbatch: Mapping[str, str | int | None]
    """Any sbatch options; None for an option without a value."""
    modules: Sequence[str]
    venv: str
    conda: str
    env: str
    env_python: str
    env_place: str
    requirements: str
    container: str
    variables: Mapping[str, str]
    secrets: Sequence[str]
    include: Sequence[str]
    exclude: Sequence[str]
    snapshot: bool
    """Whether to upload a snapshot of the code; True by default."""
    output_size: str
    sync: bool
    """Whether the job is held until a home sync that starts after its submission."""
    requeue: bool
    max_requeues: int
    signal_before: str
    retries: int
    retry_errors: bool
    max_parallel: int


NUMBERS = ("count", "range", "size", "time", "gpus")
"""Forms whose values may be numbers in Python; the command line has them as strings."""


TYPES: dict[str, tuple[Any, str, str]] = {
    "flag": (bool, "True or False", "True"),
    "number": (int, "an integer", "1"),
    "list": (Sequence, "a list", "['…']"),
    "mapping": (Mapping, "a mapping", "{'NAME': 'VALUE'}"),
    "options": (Mapping, "a mapping", "{'NAME': 'VALUE'}"),
    **dict.fromkeys(NUMBERS, ((int, str), "an integer or a string", "1")),
}
"""By the form of an option: the types of its value, their description, and an example. Other forms are strings."""


def fields(options: Options, what: str) -> dict[str, Any]:
    """Return the fields of a Request for these options. TypeError: `what`, the caller's name, has no such option."""
    given: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
    known = [row.option for row in TABLE if row.option]
    for name in options:
        if name not in known:
            from difflib import get_close_matches

            near = get_close_matches(name, known, n=1)
            raise TypeError(f"{what} has no option '{name}'" + (f"; did you mean '{near[0]}'?" if near else ""))
    for row in TABLE:
        if row.option in given:
            _check(row, given[row.option])
    typed = {row.option: _as_typed(row, given[row.option]) for row in TABLE if row.option in given}
    return {
        "flags": flags_of(typed),
        "restart_policy": restart_policy_of(given),
        "name": given.get("name", ""),
        "tags": given.get("tags", ()),
        "note": given.get("note", ""),
        "include": given.get("include", ()),
        "exclude": given.get("exclude", ()),
        "snapshot": given.get("snapshot", True),
        "secrets": given.get("secrets", ()),
        "parallel": given.get("max_parallel"),
    }


def _check(row: Row, value: Any) -> None:
    """Raise UserError if a value has the wrong type for its option."""
    kind, what, example = TYPES.get(row.form, (str, "a string", "…"))
    if row.form == "list" and isinstance(value, str):
        kind, example = list, f"[{value!r}]"
    right = isinstance(value, kind) and (kind is bool or not isinstance(value, bool))
    if not right:
        text, hint = f"option {row.option} must be {what}, not {type(value).__name__}", f"pass `{row.option}={example}`"
        raise UserError(text, code="usage", hint=hint)
    if row.form == "number" and value < row.least:
        text, hint = (
            f"option {row.option} must be at least {row.least}, not {value}",
            f"pass `{row.option}={row.least}`",
        )
        raise UserError(text, code="usage", hint=hint)
    for each in value if row.form == "list" else ():
        if not isinstance(each, str):
            text = f"option {row.option} must be a list of strings, but contains {each!r}"
            raise UserError(text, code="usage", hint=f"pass `{row.option}=[{str(each)!r}]`")


def _as_typed(row: Row, value: Any) -> Any:
    """Return a value as the command line has it, numbers as strings."""
    if row.form in ("mapping", "options"):
        return {key: None if each is None else str(each) for key, each in (value or {}).items()}
    return str(value) if isinstance(value, int) and row.form in NUMBERS else value
