"""What a run may be asked for from Python: the options of `yurt run`, as keywords."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

from yurt.errors import UserError
from yurt.lifecycle.plan import options as run_options
from yurt.model.settings import TABLE
from yurt.model.settings_row import Row


class Options(TypedDict, total=False):
    """As `yurt run --help` has them, with `_` for `-`."""

    name: str
    tags: Sequence[str]
    note: str
    cpus: int | str
    gpus: int | str
    mem: int | str
    time: int | str
    nodes: int | str
    ntasks: int | str
    partition: str
    account: str
    qos: str
    constraint: str
    nodelist: str
    exclude_nodes: str
    sbatch: Mapping[str, str | int | None]
    """Any option of sbatch; None for one without a value."""
    modules: Sequence[str]
    venv: str
    conda: str
    container: str
    variables: Mapping[str, str]
    secrets: Sequence[str]
    include: Sequence[str]
    exclude: Sequence[str]
    snapshot: bool
    """Whether the code travels; True."""
    requeue: bool
    max_requeues: int
    signal_before: str
    retries: int
    retry_errors: bool
    max_parallel: int


NUMBERS = ("count", "range", "size", "time", "gpus")
"""Forms whose values may be numbers in Python, and are texts on the command line."""


def fields(options: Options, what: str) -> dict[str, Any]:
    """The fields of a Request these options stand for. TypeError: there is no such option of `what`."""
    given: dict[str, Any] = dict(options)
    known = [row.option for row in TABLE if row.option]
    for name in given:
        if name not in known:
            from difflib import get_close_matches

            near = get_close_matches(name, known, n=1)
            raise TypeError(f"{what} has no option '{name}'" + (f"; did you mean '{near[0]}'?" if near else ""))
    typed = {row.option: _as_typed(row, given[row.option]) for row in TABLE if row.option in given}
    return {
        "flags": run_options.flags(typed),
        "restart_policy": run_options.restart_policy(given),
        "name": given.get("name", ""),
        "tags": given.get("tags", ()),
        "note": given.get("note", ""),
        "include": given.get("include", ()),
        "exclude": given.get("exclude", ()),
        "snapshot": given.get("snapshot", True),
        "secrets": given.get("secrets", ()),
        "parallel": given.get("max_parallel"),
    }


def _as_typed(row: Row, value: Any) -> Any:
    """A value as the command line has it: numbers are texts. UserError for a text where a list belongs."""
    if row.form == "list" and isinstance(value, str):
        raise UserError(f"{row.option} is a list, not a text", code="usage", hint=f"{row.option}=[{value!r}]")
    if row.form in ("mapping", "options"):
        return {key: None if each is None else str(each) for key, each in (value or {}).items()}
    return str(value) if isinstance(value, int) and row.form in NUMBERS else value
