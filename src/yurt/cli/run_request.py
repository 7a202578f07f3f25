"""The request for a run, from the options of `yurt run`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from yurt.cli import call
from yurt.errors import UserError
from yurt.model import settings
from yurt.model.sizes import MB

if TYPE_CHECKING:
    from yurt.cli.declare import Parameter
    from yurt.lifecycle.plan.request import Request
    from yurt.lifecycle.plan.sweep import Flags, SweepPlan


def request(options: dict[str, Any], parameters: Sequence[Parameter]) -> Request:
    """Return the request. UserError for values that are not valid; other mistakes are warnings."""
    from yurt.cli import run_mistakes
    from yurt.lifecycle.plan import options as run_options
    from yurt.lifecycle.plan import staging
    from yurt.lifecycle.plan.request import Request

    words, arguments = _split(options["words"])
    call.current().warnings += run_mistakes.check(words, options, parameters)
    if words and not options["spec"]:
        _check_spec(words[0])
    if options["base_image"]:
        image = options["base_image"]
        call.current().warnings.append(
            f"--base_image {image} is not used: yurt does not build images; use --container with an image on the site"
        )
    flags = run_options.flags({**options, **mappings(options)})
    largest = options["largest_file"]
    sets = _sets(options, arguments)
    if sets is not None and sets.variables:
        flags["variables"] = {**sets.variables, **flags["variables"]}
    given = {key: value for key, _, value in _pairs("param", options["params"], needs_value=True)}
    return Request(
        words=words or _script(options, sets),
        arguments=arguments,
        params=given if sets is None else {} if sets.sweep else sets.sets[0],
        typed=sets is not None,
        sets=list(sets.sets) if sets is not None and sets.sweep else (),
        style=options["style"] or "",
        spec=("mrunner" if sets.mrunner else "plain") if sets is not None and options["spec"] else "",
        parallel=options["max_parallel"],
        flags=flags,
        project=sets.project if sets is not None else "",
        name=options["name"] or (sets.name if sets is not None else ""),
        tags=options["tags"] if sets is None else sets.tags,
        note=options["note"] or (sets.note if sets is not None else ""),
        include=options["include"],
        exclude=[*options["exclude"], *(sets.exclude if sets is not None else ())],
        snapshot=not options["no_snapshot"],
        copy=options["copy"],
        restart_policy=run_options.restart_policy(options),
        hold=options["hold"],
        secrets=options["secrets"],
        stage=staging.from_options(options["stage"], options["stage_out"]),
        largest_file=None if largest is None else largest * MB,
    )


def _check_spec(script: str) -> None:
    """Raise UserError for a spec file of mrunner in place of a script: mrunner takes it there."""
    if not script.endswith(".py"):
        return
    from pathlib import Path

    from yurt.lifecycle.plan import mrunner_script

    file = Path(script)
    if file.is_file() and mrunner_script.is_spec(file):
        raise UserError(
            f"'{script}' is a spec file of mrunner, not a script; nothing was run",
            code="usage",
            hint=f"run its experiments with `yurt run --spec {script}`",
        )


def mappings(options: dict[str, Any]) -> dict[str, dict[str, str | None]]:
    """Return the options that are given as KEY=VALUE, as mappings."""
    rows = [row for row in settings.TABLE if row.option and row.form in ("mapping", "options")]
    return {
        row.option: {
            key: value if equals else None
            for key, equals, value in _pairs(row.flag[2:], options[row.option], needs_value=row.form == "mapping")
        }
        for row in rows
    }


def _script(options: dict[str, Any], sets: SweepPlan | None) -> Sequence[str]:
    """Return the command of the spec file. Raise UserError if there is none."""
    if sets is not None and sets.script:
        return sets.script
    if options["spec"]:
        file = options["spec"]
        hint = f"add the script: `yurt run --spec {file} train.py`"
        raise UserError(f"no script given, and {file} does not name one", code="usage", hint=hint)
    raise UserError("no script or command given", code="usage", hint="for example: `yurt run train.py -- --lr 0.1`")


def _sets(options: dict[str, Any], arguments: Sequence[str]) -> SweepPlan | None:
    """Return the sets of parameters of a sweep; None if it is one run."""
    if not any(options[each] for each in ("grid", "zipped", "config", "spec")):
        for each in ("shuffle", "seed", "limit"):
            if options[each] not in (None, False):
                name = each.replace("_", "-")
                raise UserError(
                    f"--{name} needs a sweep (--grid, --zip, --config or --spec)",
                    code="usage",
                    hint="for example: `--grid lr=0.1,0.01`",
                )
        return None
    from pathlib import Path

    from yurt.lifecycle.plan import sweep

    found = _read(
        sweep.Flags(
            grid=options["grid"],
            zip=options["zipped"],
            param=options["params"],
            config=Path(options["config"]) if options["config"] else None,
            spec=Path(options["spec"]) if options["spec"] else None,
            shuffle=options["shuffle"],
            seed=options["seed"],
            limit=options["limit"],
            arguments=arguments,
            name=options["name"],
            tags=options["tags"],
            note=options["note"],
        )
    )
    call.current().warnings += found.warnings
    if found.seed is not None and options["seed"] is None:
        call.current().warnings.append(f"the sweep is shuffled; use --seed {found.seed} to repeat this order")
    return found


def _read(flags: Flags) -> SweepPlan:
    """Return the sweep of files and flags; with -v, print the traceback of an error in the spec file."""
    from yurt.config.spec import SpecError
    from yurt.lifecycle.plan import sweep

    try:
        return sweep.read(flags)
    except SpecError as error:
        now = call.current()
        if error.traceback and now.verbose and not now.json:
            print(error.traceback, end="", file=sys.stderr)
        elif error.traceback and not error.hint:
            error.hint = f"see the traceback with `yurt -v run --spec {flags.spec} …`"
        raise


def _split(words: tuple[str, ...]) -> tuple[list[str], list[str]]:
    """Return the command, and the arguments after the first `--`."""
    given = list(words)
    if given and given[0].startswith("-"):  # click dropped the `--`, which came before any command
        return [], given
    if "--" not in given:
        return given, []
    at = given.index("--")
    return given[:at], given[at + 1 :]


def _pairs(option: str, texts: tuple[str, ...], *, needs_value: bool = False) -> list[tuple[str, str, str]]:
    found = [text.partition("=") for text in texts]
    for text, (key, equals, _value) in zip(texts, found, strict=True):
        if not key or (needs_value and not equals):
            raise UserError(f"--{option}: '{text}' is not KEY=VALUE", code="usage", hint=f"use `--{option} KEY=VALUE`")
    return found
