"""context list, show, edit, copy, use, remove, import: the places to run that the user has named."""

from __future__ import annotations

from collections.abc import Sequence
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
from yurt.verbs.result import Result


class Listed(msgspec.Struct, frozen=True):
    """One context in a few words."""

    name: str
    type: str
    where: str | None
    partition: str | None
    account: str | None
    current: bool


class Contexts(msgspec.Struct, frozen=True):
    """All contexts, and the name of the current one, which may not exist."""

    contexts: list[Listed]
    current: str


class ContextShown(msgspec.Struct, frozen=True):
    """One context: the keys it sets."""

    name: str
    current: bool
    keys: dict[str, Any]


class Resolved(msgspec.Struct, frozen=True):
    """One context: every setting a run would have now, and where each came from."""

    name: str
    settings: list[Setting]


class Used(msgspec.Struct, frozen=True):
    """The context made current; `shadowed_by` is what $YURT_CONTEXT says instead."""

    name: str
    shadowed_by: str | None


class Copied(msgspec.Struct, frozen=True):
    source: str
    name: str


class Edited(msgspec.Struct, frozen=True):
    name: str
    changed: bool


class Removed(msgspec.Struct, frozen=True):
    """What was removed; `current` is the context that is current now, if the current one went."""

    names: list[str]
    current: str | None


def list_(flag: str = "") -> Result[Contexts]:
    """Every context, `local` among them."""
    current = contexts.current_name(flag)
    found = [
        Listed(each.name, each.type, each.slurm_url, each.partition, each.account, each.name == current)
        for each in contexts.load(contexts.default_file()).contexts.values()
    ]
    there = any(each.current for each in found)
    warnings = [] if there else [f"the current context '{current}' does not exist"]
    return Result(kind="contexts", data=Contexts(found, current), warnings=warnings)


def show(name: str = "", flag: str = "") -> Result[ContextShown]:
    """The keys a context sets; the current context if none is named."""
    current = contexts.current_name(flag)
    context = contexts.named(name or current)
    keys = msgspec.to_builtins(context)
    del keys["name"]
    return Result(kind="context", data=ContextShown(context.name, context.name == current, keys))


def resolved(name: str = "", flag: str = "") -> Result[Resolved]:
    """Every setting of a run on a context from here, with its source."""
    from yurt.config import precedence

    context = contexts.named(name or contexts.current_name(flag))
    found = Resolved(context.name, list(precedence.resolve(context).values()))
    return Result(kind="context-resolved", data=found)


def text(name: str) -> str:
    """The YAML of a context, for an editor."""
    return contexts.body_text(contexts.default_file(), name)


def edit(name: str, new: str, *, was: str) -> Result[Edited]:
    """Give a context the text an editor made of what it `was`. UserError tells the faults; then nothing changed."""
    changed = new != was
    if changed:
        contexts.replace_body(contexts.default_file(), name, new, was=was)
    return Result(kind="context-edited", data=Edited(name, changed))


def copy(source: str, target: str) -> Result[Copied]:
    """A new context like another. UserError where the target exists."""
    contexts.copy(contexts.default_file(), source, target)
    return Result(kind="context-copied", data=Copied(source, target))


def use(name: str) -> Result[Used]:
    """Make a context the current one, for every later call."""
    import os

    contexts.use(contexts.default_file(), name)
    instead = os.environ.get("YURT_CONTEXT") or None
    done = Used(name, None if instead == name else instead)
    warnings = [f"$YURT_CONTEXT is set to '{instead}' and goes before it"] if done.shadowed_by else []
    return Result(kind="context-used", data=done, warnings=warnings)


def remove(names: Sequence[str]) -> Result[Removed]:
    """Forget contexts and what is known of them, all of those named or none; nothing on their sites is touched."""
    file = contexts.default_file()
    there = contexts.read(file)
    for name in names:
        if name == LOCAL.name and name not in there.contexts:
            raise UserError(
                "the context 'local' is part of yurt and cannot be removed",
                code="context-built-in",
                hint="yurt context list",
            )
        if name not in there.contexts:
            raise contexts.not_found(name, there.contexts)
    contexts.remove(file, names)
    for name in names:
        facts.forget(name)
    done = Removed(list(dict.fromkeys(names)), LOCAL.name if there.current_context in names else None)
    return Result(kind="contexts-removed", data=done)


def import_(file: Path, *, replace: bool = False) -> Result[Merged]:
    """Take over the contexts of a file of mrunner's or yurt's, all or none."""
    if not file.exists():
        raise NotFoundError(f"there is no file {file}", code="not-found", hint="yurt context import --help")
    found = parse(text_of(file), file)
    return Result(kind="contexts-imported", data=contexts.merge(contexts.default_file(), found, replace=replace))
