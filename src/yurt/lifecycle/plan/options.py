"""The options of a run, from the command line or the Python API, by the keys of a context."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from yurt.errors import UserError
from yurt.model.run import RestartPolicy
from yurt.model.settings import TABLE
from yurt.model.settings_row import Row


def flags(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a run that are keys of a context, by key. Options that are not given are None or empty.

    An option of the form mapping must already be a mapping. UserError if a part of `resources` has an invalid value.
    """
    found: dict[str, Any] = {"resources": {}, "sbatch_options": {}}
    for row in TABLE:
        value = given.get(row.option)
        group, _, part = row.key.rpartition(".")
        if group and value is not None:
            _check(row, value)
            found[group][part] = value
        elif row.sbatch and not row.resource and value is not None:
            _check(row, value)
            found["sbatch_options"].setdefault(row.sbatch, _for_sbatch(row, value))
        elif row.form in ("mapping", "options"):
            found[row.key] = {**found.get(row.key, {}), **(value or {})}
        elif row.option and row.key and not group:
            found[row.key] = value
    _add_gres(found, given)
    return found


def _for_sbatch(row: Row, value: str) -> str:
    """Return a value as sbatch reads it: it has no fractions of a unit."""
    from yurt.model.resources import parse_memory

    return f"{parse_memory(value)}M" if row.form == "size" else value


def _add_gres(found: dict[str, Any], given: Mapping[str, Any]) -> None:
    """Add --gres: GPUs in it are checked like --gpus, and sbatch gets the whole list if it names other resources."""
    from yurt.model.resources import parse_gres

    gres = given.get("gres")
    if gres is None:
        return
    _check(next(row for row in TABLE if row.option == "gres"), gres)
    gpus = parse_gres(gres)
    if given.get("gpus") is not None:
        whole = gres if gpus else f"gpu:{given['gpus']},{gres}"
        raise UserError("--gpus and --gres cannot be combined", code="usage", hint=f"for example: `--gres {whole}`")
    if gpus:
        found["resources"]["gpu"] = gpus
    if not gpus or "," in gres:
        found["sbatch_options"].setdefault("gres", gres)


def restart_policy(given: Mapping[str, Any]) -> RestartPolicy:
    """Return when a run is restarted. UserError if an option needs another one that is not given."""
    from yurt.model.resources import parse_seconds

    for option in ("max_requeues", "signal_before"):
        if given.get(option) and not given.get("requeue"):
            name = option.replace("_", "-")
            raise UserError(f"--{name} needs --requeue", code="usage", hint="add `--requeue`")
    if given.get("retry_errors") and not given.get("retries"):
        raise UserError("--retry-errors needs --retries", code="usage", hint="for example: `--retries 2`")
    signal_before = given.get("signal_before")
    try:
        before = parse_seconds(signal_before) if signal_before else 0
    except ValueError as error:
        hint = "for example: `--signal-before 2m`"
        raise UserError(f"--signal-before {error}, not '{signal_before}'", code="usage", hint=hint) from None
    return RestartPolicy(
        max_requeues=(given.get("max_requeues") or 10) if given.get("requeue") else 0,
        signal_before=before,
        retries=given.get("retries") or 0,
        retry_errors=bool(given.get("retry_errors")),
    )


def _check(row: Row, value: str) -> None:
    """Raise UserError with the name of the option if the value is invalid."""
    from yurt.model.context_keys import tidy_for

    try:
        tidy_for(row, value)
    except ValueError as error:
        hint = f"for example: `{row.flag} {row.example}`"
        raise UserError(f"{row.flag} {error}, not '{value}'", code="usage", hint=hint) from None
