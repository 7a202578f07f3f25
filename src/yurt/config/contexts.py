"""contexts.yaml: read into context values, and changed without touching anything else the user wrote."""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from yurt.config import paths
from yurt.config.remembered import remembered
from yurt.errors import NotFoundError, UserError
from yurt.model.context import LOCAL, Context, ContextsFile


class Merged(msgspec.Struct, frozen=True):
    """What taking over the contexts of another file came to."""

    added: list[str]
    replaced: list[str]
    unchanged: list[str]
    current: str | None
    """The context made current, if none was."""


def default_file() -> Path:
    return paths.config_home() / "contexts.yaml"


def load(file: Path) -> ContextsFile:
    """The contexts there are: those of the file, and `local` in any case.

    UserError tells every fault of the file with its line.
    """
    found = read(file)
    if LOCAL.name in found.contexts:
        return found
    return ContextsFile({LOCAL.name: LOCAL, **found.contexts}, found.current_context)


def read(file: Path) -> ContextsFile:
    """What the file itself says; nothing where there is no file. UserError as `load`."""
    return _known(file).says


class _Known(msgspec.Struct, frozen=True):
    """What a file says, and the line of every key of every context."""

    says: ContextsFile
    lines: dict[str, dict[str, int]]


def _known(file: Path) -> _Known:
    from yurt.config.text import text_of

    text = text_of(file)
    if not text.strip():
        return _Known(ContextsFile(), {})

    def understand() -> _Known:
        from yurt.config import yaml_text
        from yurt.config.contexts_text import parse

        says = parse(text, file)
        document, lines, _twice = yaml_text.parse_with_lines(text)
        bodies = document["contexts"] if says.contexts else {}
        return _Known(says, {name: _lines_in(bodies[name], name, lines) for name in says.contexts})

    return remembered("contexts", text, _Known, understand)


def _lines_in(body: Any, name: str, lines: dict[tuple[str, ...], int]) -> dict[str, int]:
    return own_lines(body, {path[2:]: line for path, line in lines.items() if path[:2] == ("contexts", name)})


def named(name: str) -> Context:
    """The context of that name. NotFoundError names the nearest."""
    there = load(default_file()).contexts
    if name not in there:
        raise not_found(name, there)
    return there[name]


def check_name(name: str) -> None:
    """UserError where a context cannot be called that."""
    from yurt.model.context_keys import is_name

    if not is_name(name):
        raise UserError(
            f"'{name}' is no name for a context",
            code="usage",
            hint="use letters, digits, '.', '_' and '-', with a letter or a digit first",
        )


def not_found(name: str, there: Iterable[str]) -> NotFoundError:
    from yurt.model.context_check import nearest

    near = nearest(name, list(there))
    text = f"there is no context '{name}'" + (f"; did you mean '{near}'?" if near else "")
    return NotFoundError(text, code="not-found", hint="yurt context list")


def current_name(flag: str = "") -> str:
    """The context to use, which may not exist: --context, else $YURT_CONTEXT, else the file's, else `local`."""
    return flag or os.environ.get("YURT_CONTEXT") or read(default_file()).current_context or LOCAL.name


def line_of(file: Path, context: str, key: str) -> int | None:
    """The line where a key of a context stands, under whatever name; None where it does not."""
    return key_lines(file, context).get(key)


def key_lines(file: Path, context: str) -> dict[str, int]:
    """The line of every key a context of the file sets, by yurt's own names (also resources.cpu and so on)."""
    return _known(file).lines.get(context, {})


def own_lines(body: dict[str, Any], lines: dict[tuple[str, ...], int]) -> dict[str, int]:
    """The lines of a body's keys by yurt's own names."""
    from yurt.model.context_keys import canonical_key

    found: dict[str, int] = {}
    for path, line in lines.items():
        if path:
            real = canonical_key(path[0], body.get(path[0]))
            found[".".join((real, *path[1:]))] = line
            found.setdefault(real.partition(".")[0], line)
    return found


def put(file: Path, new: Iterable[Context]) -> None:
    """Add contexts, or replace those of the same name; everything else in the file stays as it is."""
    from yurt.config.contexts_change import change

    made = {context.name: _checked(context) for context in new}
    change(file, lambda text, there: _with(text, there, made))


def merge(file: Path, new: ContextsFile, *, replace: bool = False) -> Merged:
    """Add the contexts of another file, all or none. UserError where one is there already and differs."""
    from yurt.config.contexts_change import change

    done: list[Merged] = []

    def edit(text: str, there: ContextsFile) -> tuple[str, ContextsFile]:
        from yurt.config import splice

        known = set(new.contexts) & set(there.contexts)
        same = [name for name in new.contexts if name in known and new.contexts[name] == there.contexts[name]]
        other = [name for name in new.contexts if name in known and name not in same]
        if other and not replace:
            names = ", ".join(f"'{name}'" for name in other)
            raise UserError(
                f"{file} has other contexts of the name {names}", code="context-exists", hint="repeat it with --replace"
            )
        current = None if there.current_context else new.current_context
        done.append(Merged([name for name in new.contexts if name not in known], other, same, current))
        text, wanted = _with(text, there, new.contexts)
        if current is None:
            return text, wanted
        return splice.set_current(text, current), ContextsFile(wanted.contexts, current)

    change(file, edit)
    return done[0]


def remove(file: Path, names: Iterable[str]) -> None:
    """Take contexts out of the file; names that are not there are no error."""
    from yurt.config.contexts_change import change

    doomed = set(names)

    def edit(text: str, there: ContextsFile) -> tuple[str, ContextsFile]:
        from yurt.config import splice

        for name in doomed & set(there.contexts):
            text = splice.remove(text, name)
        rest = {name: context for name, context in there.contexts.items() if name not in doomed}
        if there.current_context not in doomed:
            return text, ContextsFile(rest, there.current_context)
        return splice.set_current(text, None), ContextsFile(rest)

    if doomed:
        change(file, edit)


def copy(file: Path, source: str, target: str) -> None:
    """Add a context like another one, its comments too; the source's text does not change."""
    from yurt.config.contexts_change import change, says

    there = load(file).contexts
    if source not in there:
        raise not_found(source, there)
    check_name(target)
    if target in there:
        raise UserError(
            f"there is a context '{target}' already",
            code="context-exists",
            hint="choose a name not in: yurt context list",
        )

    def edit(text: str, there: ContextsFile) -> tuple[str, ContextsFile]:
        from yurt.config import splice

        new = msgspec.structs.replace(there.contexts.get(source, LOCAL), name=target)
        without_comments, wanted = _with(text, there, {target: new})
        if source in there.contexts and says(made := splice.copy(text, source, target), wanted):
            return made, wanted
        return without_comments, wanted  # an anchor cannot stand twice

    change(file, edit)


def use(file: Path, name: str) -> None:
    """Make a context the current one. NotFoundError where there is none of that name."""
    from yurt.config.contexts_change import change

    there = load(file).contexts
    if name not in there:
        raise not_found(name, there)

    def edit(text: str, there: ContextsFile) -> tuple[str, ContextsFile]:
        from yurt.config import splice

        return splice.set_current(text, name), ContextsFile(there.contexts, name)

    change(file, edit)


def body_text(file: Path, name: str) -> str:
    """The YAML of one context as it stands in the file, without its name. NotFoundError where there is none."""
    from yurt.config import splice
    from yurt.config.text import text_of

    there = load(file).contexts
    if name not in there:
        raise not_found(name, there)
    return splice.body_of(text_of(file), name) or _dumped(there[name])


def replace_body(file: Path, name: str, body: str, *, was: str) -> None:
    """Give a context another text. UserError where the text has faults (by its own lines), or the file no longer
    says what it `was`; then nothing has changed."""
    from yurt.config.contexts_change import change
    from yurt.config.contexts_text import parse

    def edit(text: str, there: ContextsFile) -> tuple[str, ContextsFile]:
        from yurt.config import splice

        if (name not in there.contexts and name != LOCAL.name) or body_text(file, name) != was:
            raise UserError(
                f"the context '{name}' was changed by somebody else meanwhile",
                code="context-changed",
                hint=f"yurt context edit {name}",
            )
        made, start = splice.put(text, name, body)
        says_now = parse(made, f"{name}.yaml", skip=made.count("\n", 0, start)).contexts[name]
        return made, ContextsFile({**there.contexts, name: says_now}, there.current_context)

    change(file, edit)


def _checked(context: Context) -> Context:
    """The context as it will be read back."""
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


def _with(text: str, there: ContextsFile, new: Mapping[str, Context]) -> tuple[str, ContextsFile]:
    from yurt.config import splice

    for name, context in new.items():
        if there.contexts.get(name) != context:
            text, _start = splice.put(text, name, _dumped(context))
    return text, ContextsFile({**there.contexts, **new}, there.current_context)
