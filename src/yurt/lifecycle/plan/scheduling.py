"""What a run requests from a scheduler: resources, sbatch options and #SBATCH lines."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from operator import attrgetter
from typing import Any

import msgspec

from yurt.backends.kinds import kind_of
from yurt.backends.slurm.options import Script
from yurt.config.precedence import Setting
from yurt.contexts import bad_nodes
from yurt.errors import UserError
from yurt.lifecycle.plan import command
from yurt.model.context import Context
from yurt.model.facts import Facts
from yurt.model.resources import parse_gpus, parse_memory, parse_time
from yurt.model.run import Resources
from yurt.model.settings import TABLE
from yurt.store import Store

SWEEP = "--grid seed=0..9"
"""What a user of job arrays types instead."""

PARSERS: dict[str, Callable[[Any], Any]] = {"size": parse_memory, "time": parse_time}
"""Parsers by the form of a setting."""


class Needs(msgspec.Struct, frozen=True, kw_only=True):
    """What a run requests."""

    resources: Resources
    options: dict[str, str | None]
    """sbatch options from flags and the context."""
    script: Script | None
    """The #SBATCH lines of the user's script."""
    minutes: int | None = None
    """The time limit from any source; None if there is none."""
    use_srun: bool = False
    home_sync: bool = False
    """Whether the job is held until a home sync."""
    avoided: list[str] = []
    """Nodes that failed recently."""
    warnings: list[str] = []

    @property
    def lines(self) -> list[str]:
        return list(self.script.lines) if self.script is not None else []

    @property
    def checked(self) -> Resources:
        """The resources, with the memory that a node needs for one Slurm task if it is requested per core."""
        from yurt.backends.slurm.options import long_name

        options = {long_name(name): value for name, value in self.all_options.items()}
        try:
            each = parse_memory(options.get("mem-per-cpu") or "")
        except ValueError:
            return self.resources
        cores = self.resources.cpus or 1
        return msgspec.structs.replace(self.resources, memory_mb=self.resources.memory_mb or each * cores)

    @property
    def all_options(self) -> dict[str, str | None]:
        """The options, including those of the script."""
        own = self.script.options if self.script is not None else {}
        return {**own, **self.options}


def needs_of(
    wanted: Context, settings: Mapping[str, Setting], script: Script | None, *, flags: Mapping[str, Any], hold: bool
) -> Needs:
    """Combine flags, the context and the script's #SBATCH lines. UserError for an invalid option."""
    options = without(wanted.sbatch_options, _overridden(flags))
    if hold:
        options["hold"] = None
    asked, every = bool(flags.get("home_sync")), {**(script.options if script is not None else {}), **options}
    home_sync = _home_sync(wanted, every, asked=asked, hold=hold)
    resources = _without_rivals(resources_of(wanted), flags)
    warnings: list[str] = []
    if script is not None:
        resources, options = command.yield_to_script(resources, options, script, _given_by_hand(settings, flags))
        warnings = command.ignored_lines(script) if kind_of(wanted.type).scheduler else []
        script = command.yield_to_options(script, resources, options)
    _check_options(options)
    return Needs(resources=resources, options=options, script=script, home_sync=home_sync, warnings=warnings)


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


def _check_options(more: Mapping[str, str | None]) -> None:
    """Raise UserError for sbatch options that yurt sets itself or does not support."""
    from yurt.backends.slurm import options

    wrong = options.faults(more)
    if wrong:
        arrays = any(options.long_name(name) == "array" for name in more)
        hint = f"use `{SWEEP}` instead of a job array" if arrays else "run `yurt run --help` to see all options"
        raise UserError("; ".join(wrong), code="usage", hint=hint)


def _home_sync(wanted: Context, options: Mapping[str, str | None], *, asked: bool, hold: bool) -> bool:
    """Return whether the job waits for a home sync. A hold of the request replaces the `home_sync` of a context.

    Options as for plain sbatch, `--hold` and the comment `home_sync`, mean the same as `--sync`.
    """
    from yurt.backends.slurm.options import waits_for_sync

    if asked and not kind_of(wanted.type).scheduler:
        raise UserError(
            f"--sync cannot be used on {wanted.name}: it has no scheduler that could hold the run",
            code="usage",
            hint="run `yurt home sync` first, then run it without `--sync`",
        )
    if asked and hold:
        raise UserError(
            "--hold and --sync cannot be combined: a home sync releases the run",
            code="usage",
            hint="use `--hold` alone, and `yurt release` when your homes are in sync",
        )
    if not kind_of(wanted.type).scheduler:
        return False
    return waits_for_sync(options) or (wanted.home_sync and not hold)


def limits_nodes(options: Mapping[str, str | None]) -> bool:
    """Return whether sbatch options limit the nodes of a job: a node that yurt chose could contradict them."""
    from yurt.backends.slurm.options import long_name

    limiting = ("constraint", "exclude", "exclusive", "nodefile", "nodelist", "nodes", "partition", "reservation")
    return any(long_name(name) in limiting for name in options)


def settled(needs: Needs, context: str, facts: Facts | None, index: Store | None) -> Needs:
    """Complete the needs from the site's facts: exclude nodes that failed recently, and add the default time limit."""
    resources, avoided = needs.resources, list[str]()
    if index is not None:
        resources, avoided = bad_nodes.avoiding(index, context, resources, facts)
    return msgspec.structs.replace(
        needs,
        resources=resources,
        avoided=avoided,
        minutes=_minutes(needs, facts),
        use_srun=_use_srun(needs, facts),
    )


def _overridden(flags: Mapping[str, Any]) -> set[str]:
    """Return the sbatch options that a flag of their own sets, such as --nodes, and --sbatch-option does not."""
    from yurt.backends.slurm.options import long_name

    by_name = {long_name(name) for name in flags.get("sbatch_options") or ()}
    parts = {f"resources.{part}": value for part, value in (flags.get("resources") or {}).items()}
    given = {**flags, **parts}
    rows = [row for row in TABLE if row.resource and given.get(row.key)]
    return {name for row in rows for name in command.RIVALS.get(row.sbatch, (row.sbatch,))} - by_name


def _without_rivals(resources: Resources, flags: Mapping[str, Any]) -> Resources:
    """Drop resources of the context that an sbatch option of the request replaces, such as mem if mem-per-cpu is given.

    UserError if the request itself has both.
    """
    from yurt.backends.slurm.options import long_name

    by_name = {long_name(name) for name in flags.get("sbatch_options") or ()}
    parts = flags.get("resources") or {}
    changes: dict[str, None] = {}
    for row in TABLE:
        group, _, part = row.key.rpartition(".")
        rival = next((name for name in command.RIVALS.get(row.sbatch, ()) if group and name in by_name), None)
        if rival is None:
            continue
        if parts.get(part) is None:
            changes[row.resource] = None
        elif row.sbatch == "mem" and rival != "mem":
            raise UserError(f"{row.flag} and --{rival} cannot be combined", code="usage", hint="keep one of them")
    if "gpus" in changes:
        changes["gpu_type"] = None
    return msgspec.structs.replace(resources, **changes)


def _given_by_hand(settings: Mapping[str, Setting], flags: Mapping[str, Any]) -> Callable[[str], bool]:
    """Return a function that tells whether a setting, such as resources.cpu, came from a flag or a variable."""

    def given(key: str) -> bool:
        name, _, part = key.partition(".")
        flag = flags.get(name)
        if part:
            flag = (flag or {}).get(part)
        return bool(flag) or settings[name].source.startswith("$")

    return given


def _use_srun(needs: Needs, facts: Facts | None) -> bool:
    """Return whether srun starts the command. A script with #SBATCH lines starts its tasks itself."""
    from yurt.backends.slurm.options import several_tasks

    return facts is not None and needs.script is None and several_tasks(needs.resources, needs.options)


def _minutes(needs: Needs, facts: Facts | None) -> int | None:
    resources = needs.resources
    if facts is None:
        return resources.minutes
    partition = facts.partition_of(resources.partition)
    usual = None if partition is None else partition.default_minutes or partition.max_minutes
    return resources.minutes or _own_minutes(needs) or usual


def _own_minutes(needs: Needs) -> int | None:
    """Return the time limit in sbatch options and #SBATCH lines; None if absent or not understood."""
    from yurt.backends.slurm import options

    own = dict(needs.script.options) if needs.script is not None else {}
    own |= {options.long_name(name): value for name, value in needs.options.items()}
    try:
        return parse_time(own.get("time") or "")
    except ValueError:
        return None


def without(options: Mapping[str, str | None], gone: Collection[str]) -> dict[str, str | None]:
    """Return sbatch options without the given ones (long names)."""
    from yurt.backends.slurm.options import long_name

    return {name: value for name, value in options.items() if long_name(name) not in gone}


def value_of(wanted: str, options: Mapping[str, str | None]) -> str:
    """Return the value of an sbatch option by its long name; empty if it is not there, or has none."""
    from yurt.backends.slurm.options import long_name

    return next((value or "" for name, value in options.items() if long_name(name) == wanted), "")
