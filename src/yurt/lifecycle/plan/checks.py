"""The resources of a run as numbers, and checks against the facts of its context."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import Any

from yurt.backends.kinds import kind_of
from yurt.errors import RefusedError, UnreachableError, UserError
from yurt.model.context import Context
from yurt.model.facts import Facts
from yurt.model.progress import Watch
from yurt.model.resources import parse_gpus, parse_memory, parse_time
from yurt.model.run import Resources
from yurt.model.settings import TABLE
from yurt.sites import connect
from yurt.sites.facts import ask
from yurt.sites.folders import project_folder

FRESH, NOW = 600.0, 5.0
"""Facts older than NOW seconds are refreshed before a run is rejected because of them; the site may have changed. If it
is unreachable, facts up to FRESH seconds old count."""


SWEEP = "--grid seed=0..9"
"""What a user of job arrays types instead."""

_LESS = {
    " GPU": "leave out `--gpus`",
    " core": "request fewer cores with `--cpus`",
    " memory": "request less memory with `--mem`",
    " node": "leave out `--nodes`",
}
"""The hint for what this machine cannot provide, by a word of the fault."""

PARSERS: dict[str, Callable[[Any], Any]] = {"size": parse_memory, "time": parse_time}
"""Parsers by the form of a setting."""


def resources_of(context: Context) -> Resources:
    """Return the resources that a context requests."""
    found: dict[str, Any] = {}
    for row in TABLE:
        value = attrgetter(row.key)(context) if row.resource else None
        if value is None:
            continue
        if row.form == "gpus":
            found["gpu_type"], found[row.resource] = parse_gpus(value)
        else:
            found[row.resource] = PARSERS[row.form](value) if row.form in PARSERS else value
    return Resources(**found)


def check(context: Context, resources: Resources, facts: Facts | None, *, label: str, watch: Watch) -> Facts | None:
    """Return facts that allow the run. RefusedError if they do not; facts that are not fresh are probed again first."""
    runs, folder = connect.backend(context).runs, project_folder(context, facts, label)
    faults = runs.check(resources, facts, folder)
    age = 0 if facts is None else time.time() - facts.probed_at
    if faults and facts is not None and age > NOW:
        try:
            facts = ask(context, watch=watch)
            faults = runs.check(resources, facts, folder)
        except UnreachableError:
            if age > FRESH:
                raise
    if faults:
        problems = "; ".join(faults)
        if kind_of(context.type).here:
            less = next((hint for word, hint in _LESS.items() if word in faults[0]), "request less")
            hint = f"{less}, or run on a cluster with `--context NAME`"
        else:
            hint = f"see what the site offers with `yurt cluster {context.name}`"
        raise RefusedError(f"{context.name}: {problems}", code="impossible", hint=hint)
    return facts


def check_options(more: Mapping[str, str | None]) -> None:
    from yurt.backends.slurm import options

    wrong = options.faults(more)
    if wrong:
        arrays = any(options.long_name(name) == "array" for name in more)
        hint = f"use `{SWEEP}` instead of a job array" if arrays else "run `yurt run --help` to see all options"
        raise UserError("; ".join(wrong), code="usage", hint=hint)


def check_secrets(names: Sequence[str], variables: Mapping[str, str], options: Mapping[str, str | None]) -> None:
    """Raise UserError if the secrets of a run cannot be passed to it."""
    from yurt.backends.slurm.options import long_name
    from yurt.config import secrets

    for name in names:
        secrets.check_name(name)
        if name in variables:
            raise UserError(
                f"'{name}' is both a secret and a variable of this run",
                code="usage",
                hint=f"remove `--secret {name}`, or remove {name} from `--var` and from `variables` in the context",
            )
    for option, value in options.items():
        if long_name(option) == "export" and "ALL" not in (value or "").split(","):
            given = value or ""
            raise UserError(
                f"sbatch option export={given} cannot be combined with secrets, because secrets are passed in the "
                "environment",
                code="usage",
                hint="use `--sbatch-option export=ALL`",
            )
    secrets.values_of(names)
