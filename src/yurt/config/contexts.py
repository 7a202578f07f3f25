"""Reads contexts.yaml into Context values, and changes it without touching the rest of the user's text."""

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from yurt.config import paths
from yurt.config.parse_cache import cached
from yurt.errors import NotFoundError, UserError, no_kubernetes
from yurt.model.context import LOCAL, Context, ContextsFile

if TYPE_CHECKING:
    from yurt.model.context_effects import Effect


class Merged(msgspec.Struct, frozen=True):
    """The result of merging the contexts of another file."""

    added: list[str]
    replaced: list[str]
    unchanged: list[str]
    current: str | None
    """The context that became the current one, if there was none."""


def default_file() -> Path:
    return paths.config_home() / "contexts.yaml"


def load(file: Path) -> ContextsFile:
    """Return the valid contexts of the file and the built-in context `local`; the others are in `invalid`.

    UserError lists every fault with its line if the file cannot be read at all.
    """
    found = read(file)
    if LOCAL.name in (*found.contexts, *found.invalid):
        return found
    return msgspec.structs.replace(found, contexts={LOCAL.name: LOCAL, **found.contexts})


def read(file: Path) -> ContextsFile:
    """Return the contexts of the file alone; none if it does not exist. UserError as for `load`."""
    return _parsed(file).content


class _Parsed(msgspec.Struct, frozen=True):
    """The content of a file, and the line of every key of every context."""

    content: ContextsFile
    lines: dict[str, dict[str, int]]


def _parsed(file: Path) -> _Parsed:
    from yurt.config.text import text_of

    text = text_of(file, trusted=True)
    if not text.strip():
        return _Parsed(ContextsFile(), {})

    def parse_text() -> _Parsed:
        from yurt.config import yaml_text
        from yurt.config.contexts_text import parse

        content = parse(text, file)
        document, lines, _twice = yaml_text.parse_with_lines(text)
        bodies = document["contexts"] if content.contexts else {}
        return _Parsed(content, {name: _lines_in(bodies[name], name, lines) for name in content.contexts})

    return cached("contexts", text, _Parsed, parse_text)


def _lines_in(body: Any, name: str, lines: dict[tuple[str, ...], int]) -> dict[str, int]:
    return own_lines(body, {path[2:]: line for path, line in lines.items() if path[:2] == ("contexts", name)})


def named(name: str) -> Context:
    """Return the context with that name. NotFoundError suggests a similar name; UserError lists its faults."""
    file = default_file()
    return _existing(file, load(file), name)


def _existing(file: Path, found: ContextsFile, name: str) -> Context:
    if name in found.invalid:
        raise why_invalid(file, name)
    if name not in found.contexts:
        raise not_found(name, (*found.contexts, *found.invalid))
    return found.contexts[name]


def why_invalid(file: Path, name: str) -> UserError:
    """Return the error with the faults of an invalid context, and their lines."""
    return all_invalid(file, [name])[0]


def all_invalid(file: Path, names: Sequence[str]) -> list[UserError]:
    """Return these errors of several contexts."""
    from yurt.config import contexts_text
    from yurt.config.text import text_of

    return contexts_text.all_invalid(text_of(file, trusted=True), file, names) if names else []


def site(name: str) -> Context:
    """Return the context with that name, to use its site. UserError as for `named`, and if yurt does not support it."""
    context = named(name)
    if context.type == "kubernetes":
        raise no_kubernetes(name)
    return context


def check_name(name: str) -> None:
    """UserError if the name is not valid for a context."""
    from yurt.model.context_keys import is_name

    if name == "best":
        raise UserError(
            "'best' cannot be the name of a context: `yurt run --context best` chooses one",
            code="usage",
            hint="choose another name",
        )
    if not is_name(name):
        raise UserError(
            f"invalid context name '{name}'",
            code="usage",
            hint="use letters, digits, '.', '_' and '-', starting with a letter or a digit",
        )


def not_found(name: str, existing: Iterable[str]) -> NotFoundError:
    if name == "best":
        return NotFoundError(
            "'best' is not a context: only `yurt run --context best` chooses one",
            code="not-found",
            hint="name a context; `yurt where` shows on which a run would start first",
        )
    from yurt.model.context_check import nearest

    near = nearest(name, list(existing))
    text = f"context '{name}' not found" + (f"; did you mean '{near}'?" if near else "")
    return NotFoundError(text, code="not-found", hint="run `yurt context list` to see all contexts")


def current_name(flag: str = "") -> str:
    """Return the name of the context to use: --context, $YURT_CONTEXT, the file's current context, or `local`.

    The context may not exist.
    """
    return flag or os.environ.get("YURT_CONTEXT") or read(default_file()).current_context or LOCAL.name


def key_lines(file: Path, context: str) -> dict[str, int]:
    """Return the line of every key that a context sets, by canonical name (also resources.cpu and so on)."""
    return _parsed(file).lines.get(context, {})


def own_lines(body: dict[str, Any], lines: dict[tuple[str, ...], int]) -> dict[str, int]:
    """Return the lines of a body's keys by canonical name."""
    from yurt.model.context_keys import canonical_key

    found: dict[str, int] = {}
    for path, line in lines.items():
        if path:
            real = canonical_key(path[0], body.get(path[0]))
            found[".".join((real, *path[1:]))] = line
            found.setdefault(real.partition(".")[0], line)
    return found


def put(file: Path, new: Iterable[Context]) -> None:
    """Add contexts, or replace those with the same name; the rest of the file is unchanged."""
    from yurt.config.contexts_text import change

    made = {context.name: _checked(context) for context in new}
    change(file, lambda text, existing: _with(text, existing, made))


def merge(file: Path, new: ContextsFile, *, replace: bool = False) -> Merged:
    """Add the contexts of another file, all or none. UserError if one exists with other values, without `replace`."""
    from yurt.config.contexts_text import change

    done: list[Merged] = []

    def edit(text: str, existing: ContextsFile) -> tuple[str, ContextsFile]:
        from yurt.config import splice

        known = set(new.contexts) & {*existing.contexts, *existing.invalid}
        other = _differing(file, existing, new, replace=replace)
        same = [name for name in new.contexts if name in known and name not in other]
        current = None if existing.current_context else new.current_context
        done.append(Merged([name for name in new.contexts if name not in known], other, same, current))
        text, wanted = _with(text, existing, new.contexts)
        if current is None:
            return text, wanted
        return splice.set_current(text, current), msgspec.structs.replace(wanted, current_context=current)

    change(file, edit)
    return done[0]


def new_effects(file: Path, new: ContextsFile, *, replace: bool = False) -> "list[Effect]":
    """Return what the contexts of another file would run or send. UserError as for `merge`; nothing is written."""
    from yurt.model.context_effects import current, effects

    existing = read(file)
    _differing(file, existing, new, replace=replace)
    known = existing.contexts
    found = [each for name, context in new.contexts.items() for each in effects(context, known.get(name))]
    if found and new.current_context and not existing.current_context:
        found.append(current(new.current_context))
    return found


def _differing(file: Path, existing: ContextsFile, new: ContextsFile, *, replace: bool) -> list[str]:
    """Return the names of contexts that exist with other values. UserError if there are any, without `replace`."""
    found = [
        name
        for name in new.contexts
        if name in existing.invalid or existing.contexts.get(name, new.contexts[name]) != new.contexts[name]
    ]
    if found and not replace:
        names = ", ".join(f"'{name}'" for name in found)
        raise UserError(
            f"{file} already has different contexts with these names: {names}",
            code="context-exists",
            hint="use `--replace` to overwrite them",
        )
    return found


def remove(file: Path, names: Iterable[str]) -> None:
    """Remove contexts from the file; missing names are ignored."""
    from yurt.config.contexts_text import change

    removed = set(names)

    def edit(text: str, existing: ContextsFile) -> tuple[str, ContextsFile]:
        from yurt.config import splice

        for name in removed & {*existing.contexts, *existing.invalid}:
            text = splice.remove(text, name)
        left = {name: context for name, context in existing.contexts.items() if name not in removed}
        rest = ContextsFile(left, existing.current_context, existing.invalid - removed)
        if existing.current_context not in removed:
            return text, rest
        return splice.set_current(text, None), msgspec.structs.replace(rest, current_context=None)

    if removed:
        change(file, edit)


def copy(file: Path, source: str, target: str) -> None:
    """Add a copy of a context, with its comments.

    NotFoundError if the source does not exist; UserError if the target exists or has an invalid name.
    """
    from yurt.config.contexts_text import change, parses_to

    existing = load(file)
    _existing(file, existing, source)
    check_name(target)
    if target in existing.contexts or target in existing.invalid:
        raise UserError(
            f"context '{target}' already exists",
            code="context-exists",
            hint="choose another name; run `yurt context list` to see the names in use",
        )

    def edit(text: str, existing: ContextsFile) -> tuple[str, ContextsFile]:
        from yurt.config import splice

        new = msgspec.structs.replace(existing.contexts.get(source, LOCAL), name=target)
        without_comments, wanted = _with(text, existing, {target: new})
        if source in existing.contexts and parses_to(made := splice.copy(text, source, target), wanted):
            return made, wanted
        return without_comments, wanted  # the text has an anchor, which cannot be defined twice

    change(file, edit)


def use(file: Path, name: str) -> None:
    """Make a context the current one. NotFoundError if it does not exist."""
    from yurt.config.contexts_text import change

    _existing(file, load(file), name)

    def edit(text: str, existing: ContextsFile) -> tuple[str, ContextsFile]:
        from yurt.config import splice

        return splice.set_current(text, name), msgspec.structs.replace(existing, current_context=name)

    change(file, edit)


def body_text(file: Path, name: str) -> str:
    """Return the YAML of one context as written in the file, without its name. NotFoundError if it does not exist."""
    from yurt.config import splice
    from yurt.config.text import text_of

    found = load(file)
    if name not in found.invalid:
        context = _existing(file, found, name)
        return splice.body_of(text_of(file), name) or _dumped(context)
    written = splice.body_of(text_of(file), name)
    if not written:
        raise why_invalid(file, name)  # its body is not on separate lines, so only an editor of the file can change it
    return written


def replace_body(file: Path, name: str, body: str, *, was: str) -> None:
    """Replace the text of a context.

    UserError if the new text has faults (with its own line numbers), or if the current text is no longer `was`; the
    file is then unchanged.
    """
    from yurt.config import contexts_text
    from yurt.config.contexts_text import change, parse

    def edit(text: str, existing: ContextsFile) -> tuple[str, ContextsFile]:
        from yurt.config import splice

        known = (*existing.contexts, *existing.invalid, LOCAL.name)
        if name not in known or body_text(file, name) != was:
            raise UserError(
                f"another process changed context '{name}' during the edit",
                code="context-changed",
                hint=f"run `yurt context edit {name}` again",
            )
        made, start = splice.put(text, name, body)
        skip = made.count("\n", 0, start)
        found = parse(made, f"{name}.yaml", skip=skip)
        if name in found.invalid:
            raise contexts_text.why_invalid(made, f"{name}.yaml", name, skip=skip)
        contexts = {**existing.contexts, name: found.contexts[name]}
        return made, ContextsFile(contexts, existing.current_context, existing.invalid - {name})

    change(file, edit)


def _checked(context: Context) -> Context:
    """Return the context as it will be read back. UserError if it is invalid."""
    from yurt.model.context_check import check_file

    found, wrong = check_file({"contexts": {context.name: msgspec.to_builtins(context)}})
    if wrong:
        raise UserError("; ".join(fault.sentence for fault in wrong), code="config-invalid")
    return found.contexts[context.name]


def _dumped(context: Context) -> str:
    from yurt.config import yaml_text

    body = msgspec.to_builtins(context)
    del body["name"]
    return yaml_text.dump(body)


def _with(text: str, existing: ContextsFile, new: Mapping[str, Context]) -> tuple[str, ContextsFile]:
    from yurt.config import splice

    changed = {name: each for name, each in new.items() if existing.contexts.get(name) != each}
    if changed:
        text = splice.put_all(text, {name: _dumped(each) for name, each in changed.items()})
    contexts = {**existing.contexts, **new}
    return text, ContextsFile(contexts, existing.current_context, existing.invalid - set(new))
