"""The options of a run as a user gives them, on a command line or to a function, by the keys of a context."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from yurt.errors import UserError
from yurt.model.run import RestartPolicy
from yurt.model.settings import TABLE
from yurt.model.settings_row import Row


def flags(given: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a run that are keys of a context, by these keys. Those that are not given are None or empty.

    An option of the form mapping must be a mapping already. UserError where a part of `resources` has a wrong value.
    """
    found: dict[str, Any] = {"resources": {}, "sbatch_options": {}}
    for row in TABLE:
        value = given.get(row.option)
        group, _, part = row.key.rpartition(".")
        if group and value is not None:
            _check(row, value)
            found[group][part] = value
        elif row.sbatch and not row.resource and value is not None:
            found["sbatch_options"].setdefault(row.sbatch, value)
        elif row.form in ("mapping", "options"):
            found[row.key] = {**found.get(row.key, {}), **(value or {})}
        elif row.option and row.key and not group:
            found[row.key] = value
    return found


def restart_policy(given: Mapping[str, Any]) -> RestartPolicy:
    """When a run may be started again. UserError: an option says something of another one that is not given."""
    from yurt.model.resources import parse_seconds

    for option in ("max_requeues", "signal_before"):
        if given.get(option) and not given.get("requeue"):
            name = option.replace("_", "-")
            raise UserError(f"--{name} says something of --requeue; give both", code="usage")
    if given.get("retry_errors") and not given.get("retries"):
        raise UserError("--retry-errors says something of --retries; give both", code="usage", hint="--retries 2")
    signal_before = given.get("signal_before")
    try:
        before = parse_seconds(signal_before) if signal_before else 0
    except ValueError as error:
        raise UserError(f"--signal-before {error}, not '{signal_before}'", code="usage") from None
    return RestartPolicy(
        max_requeues=(given.get("max_requeues") or 10) if given.get("requeue") else 0,
        signal_before=before,
        retries=given.get("retries") or 0,
        retry_errors=bool(given.get("retry_errors")),
    )


def _check(row: Row, value: str) -> None:
    """UserError, in the words of the option, where a setting cannot have that value."""
    from yurt.model.context_keys import tidy

    try:
        tidy(row.key, value)
    except ValueError as error:
        text = f"{row.flag} {error}, not '{value}'. For example: {row.flag} {row.example}"
        raise UserError(text, code="usage") from None
