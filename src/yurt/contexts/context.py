"""context list, show, edit, copy, use, remove, import: manage contexts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from yurt.config import contexts, contexts_text, facts, unused_keys
from yurt.config.contexts import Merged
from yurt.config.precedence import Setting
from yurt.config.text import text_of
from yurt.errors import NotFoundError, UserError
from yurt.model.context import LOCAL
from yurt.model.context_effects import Effect
from yurt.model.result import Result


class Listed(msgspec.Struct, frozen=True):
    """One context in the list."""

    name: str
    type: str
    where: str | None
    partition: str | None
    account: str | None
    current: bool


class Contexts(msgspec.Struct, frozen=True):
    """All contexts, and the name of the current one; a context of that name may not exist."""

    contexts: list[Listed]
    current: str


class ContextShown(msgspec.Struct, frozen=True):
    """One context, with the keys it sets."""

    name: str
    current: bool
    keys: dict[str, Any]
    purges: list[str] = []
    """What the site deletes by itself, according to its profile."""


class Resolved(msgspec.Struct, frozen=True):
    """One context, with every setting that a run would have now and the source of each."""

    name: str
    settings: list[Setting]


class Used(msgspec.Struct, frozen=True):
    """The new current context; `shadowed_by` is the value of $YURT_CONTEXT if that names another one."""

    name: str
    shadowed_by: str | None


class Copied(msgspec.Struct, frozen=True):
    source: str
    name: str


class Edited(msgspec.Struct, frozen=True):
    name: str
    changed: bool


class Removed(msgspec.Struct, frozen=True):
    """The removed contexts; `current` is the new current context if the current one was removed."""

    names: list[str]
    current: str | None


def list_(flag: str = "") -> Result[Contexts]:
    """List all valid contexts, including `local`. The faults of the others are warnings."""
    current = contexts.current_name(flag)
    file = contexts.default_file()
    known = contexts.load(file)
    found = [
        Listed(each.name, each.type, each.slurm_url, each.partition, each.account, each.name == current)
        for each in known.contexts.values()
    ]
    warnings = [each.message for each in contexts.all_invalid(file, sorted(known.invalid))]
    if current not in known.contexts and current not in known.invalid:
        warnings.append(f"the current context '{current}' does not exist")
    return Result(kind="contexts", data=Contexts(found, current), warnings=warnings)


def show(name: str = "", flag: str = "") -> Result[ContextShown]:
    """Return the keys that a context sets, by default the current context."""
    current = contexts.current_name(flag)
    context = contexts.named(name or current)
    keys = msgspec.to_builtins(context)
    del keys["name"]
    purges: list[str] = []
    warnings = list(unused_keys.all_of(context.name))
    if context.profile is not None:
        from yurt.contexts import profiles

        known = profiles.named(context.profile)
        if known is not None:
            purges = list(known.profile.purge_lines())
        else:
            warnings.append(f"profile '{context.profile}' of context '{context.name}' not found")
    shown = ContextShown(context.name, context.name == current, keys, purges)
    return Result(kind="context", data=shown, warnings=warnings)


def resolved(name: str = "", flag: str = "") -> Result[Resolved]:
    """Return every setting that a run from the working directory would have on a context, with its source."""
    from yurt.config import precedence

    context = contexts.named(name or contexts.current_name(flag))
    settings = list(precedence.resolve(context).values())
    if context.profile is not None:
        settings = _with_profile(settings, context.profile)
    found = Resolved(context.name, settings)
    return Result(kind="context-resolved", data=found)


def _with_profile(settings: list[Setting], name: str) -> list[Setting]:
    """Return settings; the source of those that the context has from its profile says so."""
    from yurt.contexts import profiles

    known = profiles.named(name)
    given = known.profile.context if known is not None else {}
    return [
        msgspec.structs.replace(each, source=f"{each.source}, as in profile {name}")
        if each.key in given and msgspec.to_builtins(each.value) == given[each.key]
        else each
        for each in settings
    ]


def text(name: str) -> str:
    """Return the YAML of a context, for an editor."""
    return contexts.body_text(contexts.default_file(), name)


def edit(name: str, new: str, *, was: str) -> Result[Edited]:
    """Replace the YAML of a context, which `was` the text given to the editor. UserError: it is invalid; no change."""
    changed = new != was
    if changed:
        contexts.replace_body(contexts.default_file(), name, new, was=was)
    return Result(kind="context-edited", data=Edited(name, changed))


def copy(source: str, target: str) -> Result[Copied]:
    """Copy a context. UserError: the target exists."""
    contexts.copy(contexts.default_file(), source, target)
    return Result(kind="context-copied", data=Copied(source, target))


def use(name: str) -> Result[Used]:
    """Make a context the current one for all later commands."""
    import os

    contexts.use(contexts.default_file(), name)
    instead = os.environ.get("YURT_CONTEXT") or None
    done = Used(name, None if instead == name else instead)
    warnings = (
        [f"the environment variable YURT_CONTEXT is set to '{instead}' and takes precedence"]
        if done.shadowed_by
        else []
    )
    return Result(kind="context-used", data=done, warnings=warnings)


def remove(names: Sequence[str]) -> Result[Removed]:
    """Remove contexts and their facts, all of those named or none. Does not change their sites."""
    file = contexts.default_file()
    known = contexts.read(file)
    for name in names:
        existing = (*known.contexts, *known.invalid)
        if name == LOCAL.name and name not in existing:
            raise UserError(
                "context 'local' is built in and cannot be removed",
                code="context-built-in",
                hint="run `yurt context list` to see all contexts",
            )
        if name not in existing:
            raise contexts.not_found(name, existing)
    contexts.remove(file, names)
    for name in names:
        facts.forget(name)
    done = Removed(list(dict.fromkeys(names)), LOCAL.name if known.current_context in names else None)
    return Result(kind="contexts-removed", data=done)


MOST_IMPORTED = 500
"""Contexts in an imported file: more than a user could check before the answer to the question."""

Accept = Callable[[Sequence[Effect]], bool]
"""Returns whether the user accepts what imported contexts would run or send."""


def import_(file: Path, *, replace: bool = False, accept: Accept = lambda _effects: False) -> Result[Merged]:
    """Import the valid contexts of an mrunner or yurt file, all or none. The faults of the others are warnings.

    UserError if no context is valid, or if they would run programs or send files that the user does not `accept`;
    nothing is written.
    """
    if not file.exists():
        hint = "check the path, which is relative to the working directory"
        raise NotFoundError(f"file '{file}' not found", code="not-found", hint=hint)
    text = text_of(file)
    found = contexts_text.parse(text, file)
    if len(found.contexts) + len(found.invalid) > MOST_IMPORTED:
        raise UserError(
            f"{file} has {len(found.contexts) + len(found.invalid):,} contexts; the limit of an import is"
            f" {MOST_IMPORTED:,}",
            code="config-invalid",
            hint="import a file with the clusters that you use",
        )
    wrong = contexts_text.all_invalid(text, file, sorted(found.invalid)) if found.invalid else []
    if wrong and not found.contexts:
        raise wrong[0]
    if found.current_context in found.invalid:
        found = msgspec.structs.replace(found, current_context=None)
    effects = contexts.new_effects(contexts.default_file(), found, replace=replace)
    if effects and not accept(effects):
        raise UserError(
            "\n".join([f"{file} sets keys that run programs or send files:", *(f"  {each.line}" for each in effects)]),
            code="not-confirmed",
            hint="nothing was imported; if you trust these settings, add `--yes`",
        )
    done = contexts.merge(contexts.default_file(), found, replace=replace)
    warnings = [f"not imported: {each.message}" for each in wrong]
    warnings += [unused_keys.sentence(name, keys) for name, keys in found.unused.items()]
    return Result(kind="contexts-imported", data=done, warnings=warnings)
