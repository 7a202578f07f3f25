"""A user's request for a run, what it has of the options of the command line and of the Python API, and its plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec

from yurt.errors import UnreachableError, UserError
from yurt.model.run import After, Plan, RestartPolicy
from yurt.model.settings import TABLE
from yurt.model.settings_row import Row
from yurt.model.stage import StageRequest


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """A user's request for a run or a sweep."""

    words: Sequence[str]
    """The script or command; may be empty only for a session."""
    arguments: Sequence[str] = ()
    """The arguments after `--`."""
    params: Mapping[str, Any] = {}
    """Further parameters. The script receives texts unchanged; yurt records them as numbers or lists if they are."""
    typed: bool = False
    """Whether `params` already have their types, so that a text stays a text."""
    flags: Mapping[str, Any] = {}
    """Settings given as options, by key of a context."""
    project: str = ""
    """The name of the project, instead of its own."""
    name: str = ""
    tags: Sequence[str] = ()
    note: str = ""
    include: Sequence[str] = ()
    exclude: Sequence[str] = ()
    snapshot: bool = True
    copy: bool = False
    restart_policy: RestartPolicy = RestartPolicy()
    after: Sequence[After] = ()
    sets: Sequence[Mapping[str, Any]] = ()
    """For a sweep: the typed parameters of each task."""
    pass_sets: bool = True
    """Whether `sets` are also passed as arguments of the command."""
    style: Literal["", "options", "hydra"] = ""
    """How parameters are passed: `--key value` or `key=value`; empty to decide by the script."""
    array: str = ""
    """The indices of `#SBATCH --array` if it made `sets`, such as 0-9."""
    spec: Literal["", "plain", "mrunner"] = ""
    """Whether a spec file made `sets`, and whether with the helpers of mrunner."""
    parallel: int | None = None
    """How many tasks may run at a time."""
    hold: bool = False
    largest_file: int | None = None
    secrets: Sequence[str] = ()
    """Names of variables whose values are read from the environment or the keyring on submission."""
    session: bool = False
    """Whether the job runs no command, but keeps its resources for a session with `words`; without words, a shell."""
    dev: Mapping[str, Any] | None = None
    """If the job is a dev node, which `name` names: the configuration of the program that holds it."""
    service: Mapping[str, Any] | None = None
    """If the job is a service, which `name` names: the configuration of the program that runs it."""
    stage: StageRequest = StageRequest()
    """What options stage on the disk of the node, in addition to the project file."""
    entry: str = ""
    """If the job is a service: the entry of the project's services whose settings it has, if there is one."""
    calls: str = ""
    """Display name of the function that the tasks call."""
    calls_per_process: int = 0
    """How many calls one process makes at most, where processes stay; 0: no limit."""
    calls_python: str = ""
    """The version of Python that pickled the calls, such as 3.11; empty if the request names the Python to use."""


class Unsettled(msgspec.Struct, frozen=True):
    """Why a plan could not be completed with the facts of its site."""

    draft: bytes
    """What is saved, to complete the plan when the site responds."""
    why: UnreachableError


class Planned(msgspec.Struct, frozen=True):
    """A plan, and warnings about it."""

    plan: Plan
    warnings: list[str]
    unsettled: Unsettled | None = None


def flags_of(given: Mapping[str, Any]) -> dict[str, Any]:
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


def restart_policy_of(given: Mapping[str, Any]) -> RestartPolicy:
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
