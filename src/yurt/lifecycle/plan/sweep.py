"""Combines flags, a configuration file and a spec file into a name, tags and the parameter sets of a sweep.

Nothing is submitted here. Flags override the spec file, which overrides the configuration file; tags add up.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from yurt.config.text import content_of
from yurt.errors import UserError
from yurt.model import params
from yurt.model.grid import Axis, Grid, GridError, Sets, checked, fixed, limited, shuffled, unique
from yurt.model.grid_text import Read, axes, column, pair

if TYPE_CHECKING:
    from yurt.config.experiment import Experiment
    from yurt.config.spec import Spec, SpecExperiment


class Flags(msgspec.Struct, frozen=True, kw_only=True):
    """Options about parameters, as the user typed them."""

    grid: Sequence[str] = ()
    zip: Sequence[str] = ()
    param: Sequence[str] = ()
    config: Path | None = None
    spec: Path | None = None
    shuffle: bool = False
    seed: int | None = None
    """Seed for --shuffle; random if not given."""
    limit: int | None = None
    arguments: Sequence[str] = ()
    """The arguments after `--`; a parameter among them overrides the files."""
    name: str = ""
    tags: Sequence[str] = ()
    note: str = ""


class SweepPlan(msgspec.Struct, frozen=True, kw_only=True):
    """The parameter sets of a sweep, and the settings they share."""

    sets: Sets
    sweep: bool
    """Whether a grid, zipped keys or a spec file was given, even for a single set."""
    name: str = ""
    project: str = ""
    tags: Sequence[str] = ()
    note: str = ""
    seed: int | None = None
    """Seed of the shuffle, if there was one."""
    script: Sequence[str] = ()
    """The command of the spec file, if it has one."""
    variables: Mapping[str, str] = {}
    exclude: Sequence[str] = ()
    mrunner: bool = False
    """Whether the spec file was made with the helpers of mrunner."""
    warnings: Sequence[str] = ()


def read(flags: Flags) -> SweepPlan:
    """Read flags and the files they name. UserError if they are invalid."""
    config: Experiment | None = None
    spec: Spec | None = None
    if flags.config is not None:
        from yurt.config import experiment

        _follow(flags.config)
        config = experiment.read(flags.config, partial(_may_read, flags.config))
    if flags.spec is not None:
        from yurt.config import spec as specs

        spec = specs.read(flags.spec)
    if flags.shuffle and flags.seed is None:
        flags = msgspec.structs.replace(flags, seed=int.from_bytes(os.urandom(4)))
    return combined(flags, config, spec, _values)


def _values(name: str) -> str:
    """Return the content of a file that the user named with `@`."""
    file = Path(name).expanduser()
    _follow(file)
    return content_of(file).decode("utf-8-sig")


def _follow(file: Path) -> None:
    """Raise UnconfirmedError if a file that the user named is in the project only by a link of the project."""
    from yurt.contexts import outside_files
    from yurt.contexts.project import Project

    project = Project()
    if Path(os.path.normpath(Path.cwd() / file)).is_relative_to(os.path.realpath(project.folder)):
        outside_files.check(project, [file], str(file))


def _may_read(config: Path, file: Path) -> None:
    """Raise UnconfirmedError if a file of the project names a file with values that is outside the project."""
    from yurt.contexts import outside_files
    from yurt.contexts.project import Project

    project = Project()
    if outside_files.is_in(project, config):
        outside_files.check(project, [file], str(config))


def combined(flags: Flags, config: Experiment | None, spec: Spec | None, read_file: Read) -> SweepPlan:
    """Combine what was read into a plan. UserError as for `read`. Pure, except for `@file` values of flags."""
    try:
        together, columns, single = _typed(flags, read_file)
        over = [*axes(columns, together), *([fixed(single)] if single else [])]
        grids = _grids(flags, config, spec, over)
        for grid in grids:
            _check_variables(grid)
        sets, warnings = unique(Sets(grids))
        seed = (flags.seed or 0) if flags.shuffle else None
        if seed is not None:
            sets = shuffled(sets, seed)
        if flags.limit is not None:
            sets = limited(sets, flags.limit)
    except GridError as error:
        raise UserError(error.problem, code="usage", hint=error.hint) from None
    shared = _of_spec(str(flags.spec), spec.experiments) if spec is not None else {}
    tags = [*(config.tags if config is not None else ()), *shared.pop("tags", ()), *flags.tags]
    return SweepPlan(
        sets=sets,
        sweep=bool(together or columns or spec is not None or (config is not None and config.grids)),
        name=flags.name or shared.pop("name", "") or (config.name if config is not None else ""),
        project=shared.pop("project", "") or (config.project if config is not None else ""),
        tags=list(dict.fromkeys(tags)),
        note=flags.note or (config.note if config is not None else ""),
        seed=seed,
        warnings=[*(config.warnings if config else ()), *(spec.warnings if spec else ()), *warnings],
        **{key: value for key, value in shared.items() if key not in ("name", "project")},
    )


def _typed(flags: Flags, read_file: Read) -> tuple[dict[str, Sequence[Any]], dict[str, Sequence[Any]], dict[str, Any]]:
    """Return the values of --zip, --grid and --param by key. GridError if a key is given twice, or has no values."""
    together: dict[str, Sequence[Any]] = {}
    columns: dict[str, Sequence[Any]] = {}
    single: dict[str, Any] = {}
    owners: dict[str, str] = {}
    example = "0.1,0.01"
    for flag, texts, found in (("--zip", flags.zip, together), ("--grid", flags.grid, columns)):
        for text in texts:
            key, values = pair(text, flag, example)
            _once(owners, key, flag)
            try:
                found[key] = column(values, read_file)
            except GridError as error:
                raise GridError(f"{flag} {key} {error.problem}", _corrected(flag, key, error.hint)) from None
    for text in flags.param:
        key, value = pair(text, "--param", "0.1")
        _once(owners, key, "--param")
        try:
            single[key] = checked(params.typed(value))
        except ValueError as error:
            raise GridError(f"--param {key} {error}", f"for example: `--param {key}=0.1`") from None
    return together, columns, single


def _corrected(flag: str, key: str, values: str) -> str:
    from shlex import quote

    return f"use `{flag} {quote(f'{key}={values}')}`" if values else "give fewer values, or submit several sweeps"


def _once(owners: dict[str, str], key: str, flag: str) -> None:
    if key in owners:
        where = f"twice with {flag}" if owners[key] == flag else f"with {owners[key]} and with {flag}"
        raise GridError(f"{key} is given {where}", "give all values of a key in one option")
    owners[key] = flag


def _grids(flags: Flags, config: Experiment | None, spec: Spec | None, over: Sequence[Axis]) -> list[Grid]:
    """Return the axes in order of increasing priority. Keys that a later axis sets are removed from earlier ones."""
    decided = {key for axis in over for key in axis.keys} | set(params.read(flags.arguments))
    rows: list[Axis] = []
    if spec is not None:
        given = [each.parameters for each in spec.experiments]
        _check_keys(flags.spec, given)
        kept = [{key: value for key, value in each.items() if key not in decided} for each in given]
        rows = [Axis(str(flags.spec), kept)]
        decided |= set.intersection(*(set(each) for each in given))
    if config is None:
        return [Grid([*rows, *over])]
    under = [fixed(config.parameters)] if config.parameters else []
    grids = [[axis.without(decided) for axis in [*under, *each]] for each in config.grids or [[]]]
    return [Grid([*(axis for axis in each if axis is not None), *rows, *over]) for each in grids]


def _check_keys(file: Path | None, given: Sequence[Mapping[str, Any]]) -> None:
    for key in {key for each in given for key in each}:
        try:
            params.check_key(key)
        except ValueError as error:
            raise GridError(f"{file}: {error}") from None


def _check_variables(grid: Grid) -> None:
    """Raise GridError if two parameters of one set map to the same variable."""
    kinds = [{frozenset(row) for row in axis.rows} for axis in grid.axes]
    for keys in product(*kinds):
        try:
            params.variables(dict.fromkeys(sorted(frozenset().union(*keys))))
        except ValueError as error:
            raise GridError(str(error), "rename one of the parameters") from None


def _of_spec(file: str, experiments: Sequence[SpecExperiment]) -> dict[str, Any]:
    """Return the settings that all experiments of a spec file share. UserError if they differ."""
    from yurt.config.spec import variables

    first = experiments[0]
    for what, of in (
        ("name", lambda each: each.name),
        ("script", lambda each: each.script),
        ("environment", variables),
    ):
        other = next((each for each in experiments if of(each) != of(first)), None)
        if other is not None:
            # Variables may contain secrets: their values are not quoted.
            values = "" if what == "environment" else f" ({of(first)!r} and {of(other)!r})"
            raise UserError(
                f"the experiments in {file} have different {what}s{values}; all experiments of a sweep must share one",
                code="spec-failed",
                hint=f"write one spec file for each {what}",
            )
    return {
        "name": first.name or "",
        "project": first.project or "",
        "tags": [tag for each in experiments for tag in each.tags],
        "script": words(first.script or "", file),
        "variables": variables(first),
        "exclude": list(dict.fromkeys(pattern for each in experiments for pattern in each.exclude)),
        "mrunner": first.mrunner,
    }


SHELL = re.compile(r"[;&|<>()$`\n*?~#]|^\s*\w+=")
"""Matches lines that need a shell."""


def words(script: str | Sequence[str], file: str = "") -> list[str]:
    """Split a command into words. A line that needs a shell is passed to `sh -c`, which also gets the arguments."""
    import shlex

    if not isinstance(script, str):
        return list(script)
    if SHELL.search(script):
        return ["sh", "-c", f'{script} "$@"', "sh"]
    try:
        return shlex.split(script)
    except ValueError as error:
        file = file or "an experiment"
        raise UserError(f"invalid script in {file}: {error}", code="spec-failed") from None
