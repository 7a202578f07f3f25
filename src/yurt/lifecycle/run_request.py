"""The request for a run, from the options of `yurt run`, and with --race the request for each candidate."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from yurt.cli import call
from yurt.errors import UserError
from yurt.lifecycle import run_mistakes
from yurt.lifecycle.plan import mrunner_script, staging
from yurt.lifecycle.plan.request import Request, flags_of, restart_policy_of
from yurt.model import settings
from yurt.model.sizes import MB

if TYPE_CHECKING:
    from yurt.cli.declare import Parameter
    from yurt.lifecycle.plan.sweep import Flags, SweepPlan

_PART = r":(?=[a-z][a-z0-9_-]*=)"
"""Before a setting of a candidate; a colon in a value, such as a time, is not one."""


def request(options: dict[str, Any], parameters: Sequence[Parameter]) -> Request:
    """Return the request. UserError for values that are not valid; other mistakes are warnings."""
    words, arguments = _split(options["words"])
    call.current().warnings += run_mistakes.check(words, options, parameters)
    if words and not options["spec"]:
        _check_spec(words[0])
    if options["base_image"]:
        image = options["base_image"]
        call.current().warnings.append(
            f"--base_image {image} is not used: yurt does not build images; use --container with an image on the site"
        )
    found = flags(options)
    largest = options["largest_file"]
    sets = _sets(options, arguments)
    if sets is not None and sets.variables:
        found["variables"] = {**sets.variables, **found["variables"]}
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
        flags=found,
        project=sets.project if sets is not None else "",
        name=options["name"] or (sets.name if sets is not None else ""),
        tags=options["tags"] if sets is None else sets.tags,
        note=options["note"] or (sets.note if sets is not None else ""),
        include=options["include"],
        exclude=[*options["exclude"], *(sets.exclude if sets is not None else ())],
        snapshot=not options["no_snapshot"],
        copy=options["copy"],
        restart_policy=restart_policy_of(options),
        hold=options["hold"],
        secrets=options["secrets"],
        stage=staging.from_options(options["stage"], options["stage_out"]),
        largest_file=None if largest is None else largest * MB,
    )


def _check_spec(script: str) -> None:
    """Raise UserError for a spec file of mrunner in place of a script: mrunner takes it there."""
    if not script.endswith(".py"):
        return
    file = Path(script)
    if file.is_file() and mrunner_script.is_spec(file):
        raise UserError(
            f"'{script}' is a spec file of mrunner, not a script; nothing was run",
            code="usage",
            hint=f"run its experiments with `yurt run --spec {script}`",
        )


def flags(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options that are keys of a context, by key. UserError for values that are not valid."""
    rows = [row for row in settings.TABLE if row.option and row.form in ("mapping", "options")]
    mappings = {
        row.option: {
            key: value if equals else None
            for key, equals, value in _pairs(
                row.flag[2:], options.get(row.option, ()), needs_value=row.form == "mapping"
            )
        }
        for row in rows
    }
    return flags_of({**options, **mappings})


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


def candidates(options: dict[str, Any], request: Request) -> list[tuple[str, Request]]:
    """Return the candidates of a race: contexts, and the request for each. Empty if it is none."""
    texts = [text.strip() for each in options["race"] for text in each.split(",") if text.strip()]
    if not options["race"]:
        if options["race_mode"]:
            raise UserError("--race-mode needs --race", code="usage", hint="for example: `--race alpha,beta`")
        return []
    if call.current().context:
        raise UserError("--race and --context cannot be combined", code="usage", hint="name all contexts with `--race`")
    if options["dry_run"]:
        raise UserError(
            "--dry-run shows one plan, not a race",
            code="usage",
            hint="look at each context with `--context NAME --dry-run`",
        )
    found = [_candidate(text, options, request) for text in texts]
    if len(found) < 2 or len(set(texts)) < len(texts):
        raise UserError(
            "a race needs at least two different candidates",
            code="usage",
            hint="for example: `--race alpha,beta` or `--race alpha:partition=short,alpha:partition=long`",
        )
    return found


def _candidate(text: str, options: dict[str, Any], request: Request) -> tuple[str, Request]:
    context, *parts = re.split(_PART, text)
    if ":" in context:
        raise UserError(
            f"--race: '{context}' is neither a context nor CONTEXT:KEY=VALUE",
            code="usage",
            hint="for example: `--race alpha:partition=short,beta`",
        )
    if not parts:
        return context, request
    known = {row.flag[2:]: row.option for row in settings.RESOURCES if row.form not in ("mapping", "options", "list")}
    changed = dict[str, Any]()
    for part in parts:
        key, _, value = part.partition("=")
        if key not in known:
            raise UserError(
                f"--race: '{key}' cannot differ between candidates",
                code="usage",
                hint=f"for example: `--race {context}:partition=NAME`; keys are {', '.join(known)}",
            )
        changed[known[key]] = value
    mappings = {
        row.option: request.flags.get(row.key, {}) for row in settings.TABLE if row.form in ("mapping", "options")
    }
    found = flags_of({**options, **mappings, **_typed(changed)})
    return context, msgspec.structs.replace(request, flags={**found, "variables": request.flags["variables"]})


def _typed(values: dict[str, str]) -> dict[str, Any]:
    """Return values as the options of `yurt run` read them."""
    counts = {row.option for row in settings.RESOURCES if row.form in ("count", "number")}
    return {key: int(value) if key in counts and value.isdigit() else value for key, value in values.items()}
