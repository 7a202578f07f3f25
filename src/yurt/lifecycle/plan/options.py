"""The options of a run as a user gives them, on a command line or to a function, by the keys of a context."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from yurt.errors import UserError
from yurt.model.run import RestartPolicy

SETTINGS = ("time", "ntasks", "partition", "account", "qos", "nodelist", "exclude_nodes", "venv", "conda", "container")
"""Options that are keys of a context by the same name."""


def flags(given: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of a run. `sbatch` and `variables` are mappings, `modules` a list; what is not given is None."""
    for option, key in (("cpus", "resources.cpu"), ("gpus", "resources.gpu"), ("mem", "resources.mem")):
        _check(option, key, given.get(option))
    resources = {"cpu": given.get("cpus"), "gpu": given.get("gpus"), "mem": given.get("mem")}
    sbatch = {key: given[key] for key in ("nodes", "constraint") if given.get(key) is not None}
    return {
        **{key: given.get(key) for key in SETTINGS},
        "resources": {key: value for key, value in resources.items() if value is not None},
        "sbatch_options": {**sbatch, **(given.get("sbatch") or {})},
        "modules_to_load": given.get("modules") or (),
        "variables": given.get("variables") or {},
    }


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


def _check(option: str, key: str, value: str | None) -> None:
    """UserError, in the words of the option, where a setting cannot have that value."""
    if value is None:
        return
    from yurt.model.context_keys import EXAMPLES, tidy

    try:
        tidy(key, value)
    except ValueError as error:
        text = f"--{option} {error}, not '{value}'. For example: --{option} {EXAMPLES[key]}"
        raise UserError(text, code="usage") from None
