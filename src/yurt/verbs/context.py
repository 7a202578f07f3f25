"""context list, show, edit, copy, use, remove, import: manage contexts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from yurt.config import contexts, facts
from yurt.config.contexts import Merged
from yurt.config.contexts_text import parse
from yurt.config.precedence import Setting
from yurt.config.text import text_of
from yurt.errors import NotFoundError, UserError
from yurt.model.context import LOCAL
from yurt.model.context_effects import Effect
from yurt.verbs.result import Result


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
    """List all contexts, including `local`."""
    current = contexts.current_name(flag)
    found = [
        Listed(each.name, each.type, each.slurm_url, each.partition, each.account, each.name == current)
        for each in contexts.load(contexts.default_file()).contexts.values()
    ]
    exists = any(each.current for each in found)
    warnings = [] if exists else [f"the current context '{current}' does not exist"]
    return Result(kind="contexts", data=Contexts(found, current), warnings=warnings)


def show(name: str = "", flag: str = "") -> Result[ContextShown]:
    """Return the keys that a context sets, by default the current context."""
    current = contexts.current_name(flag)
    context = contexts.named(name or current)
    keys = msgspec.to_builtins(context)
    del keys["name"]
    return Result(kind="context", data=ContextShown(context.name, context.name == current, keys))


def resolved(name: str = "", flag: str = "") -> Result[Resolved]:
    """Return every setting that a run from the working directory would have on a context, with its source."""
    from yurt.config import precedence

    context = contexts.named(name or contexts.current_name(flag))
    found = Resolved(context.name, list(precedence.resolve(context).values()))
    return Result(kind="context-resolved", data=found)


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
        if name == LOCAL.name and name not in known.contexts:
            raise UserError(
                "context 'local' is built in and cannot be removed",
                code="context-built-in",
                hint="run `yurt context list` to see all contexts",
            )
        if name not in known.contexts:
            raise contexts.not_found(name, known.contexts)
    contexts.remove(file, names)
    for name in names:
        facts.forget(name)
    done = Removed(list(dict.fromkeys(names)), LOCAL.name if known.current_context in names else None)
    return Result(kind="contexts-removed", data=done)


Accept = Callable[[Sequence[Effect]], bool]
"""Returns whether the user accepts what imported contexts would run or send."""


def import_(file: Path, *, replace: bool = False, accept: Accept = lambda _effects: False) -> Result[Merged]:
    """Import the contexts of an mrunner or yurt file, all or none.

    UserError if they would run programs or send files that the user does not `accept`; nothing is written.
    """
    if not file.exists():
        hint = "check the path, which is relative to the working directory"
        raise NotFoundError(f"file '{file}' not found", code="not-found", hint=hint)
    found = parse(text_of(file), file)
    effects = contexts.new_effects(contexts.default_file(), found, replace=replace)
    if effects and not accept(effects):
        raise UserError(
            "\n".join([f"{file} sets keys that run programs or send files:", *(f"  {each.line}" for each in effects)]),
            code="not-confirmed",
            hint="nothing was imported; if you trust these settings, add `--yes`",
        )
    return Result(kind="contexts-imported", data=contexts.merge(contexts.default_file(), found, replace=replace))
