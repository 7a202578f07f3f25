"""The option --race of `yurt run`: which contexts take part, and what each of them changes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from yurt.cli import call
from yurt.errors import UserError
from yurt.model import settings

if TYPE_CHECKING:
    from yurt.lifecycle.plan.request import Request

_PART = r":(?=[a-z][a-z0-9_-]*=)"
"""Before a setting of a candidate; a colon in a value, such as a time, is not one."""


def read(options: dict[str, Any], request: Request) -> list[tuple[str, Request]]:
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
    import msgspec

    from yurt.lifecycle.plan import options as run_options

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
                hint=f"for example: `--race {context}:partition=NAME`; keys are {_names(known)}",
            )
        changed[known[key]] = value
    mappings = {
        row.option: request.flags.get(row.key, {}) for row in settings.TABLE if row.form in ("mapping", "options")
    }
    flags = run_options.flags({**options, **mappings, **_typed(changed)})
    return context, msgspec.structs.replace(request, flags={**flags, "variables": request.flags["variables"]})


def _typed(values: dict[str, str]) -> dict[str, Any]:
    """Return values as the options of `yurt run` read them."""
    counts = {row.option for row in settings.RESOURCES if row.form in ("count", "number")}
    return {key: int(value) if key in counts and value.isdigit() else value for key, value in values.items()}


def _names(known: Sequence[str] | dict[str, str]) -> str:
    return ", ".join(known)
