"""Parses the text of a contexts file and reports every fault with its line."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import msgspec

from yurt.config import faults, paths
from yurt.config.lock import locked
from yurt.config.text import text_of
from yurt.errors import UserError
from yurt.model.context import ContextsFile
from yurt.model.context_check import Fault, check_file, context_of

Edit = Callable[[str, ContextsFile], tuple[str, ContextsFile]]
"""A function from (text, parsed text) to (new text, expected parse of the new text)."""


def change(file: Path, edit: Edit) -> None:
    """Read, edit and write the file under its lock; a symbolic link stays a link.

    UserError if the new text does not parse to the expected contexts; the file is then unchanged.
    """
    target = file.resolve()
    try:
        with locked(target):
            text = text_of(target, trusted=True)
            before = parse(text, file)  # never rewrite a file that yurt cannot parse
            made, expected = _edited(file, edit, text, before)
            if made != text:
                if not parses_to(made, expected):
                    raise _needs_manual_edit(file)
                ending = "\r\n" if b"\r\n" in (target.read_bytes() if target.exists() else b"") else "\n"
                paths.write_private(target, made.replace("\n", ending).encode())
    except OSError as error:
        raise UserError(f"cannot write {file}: {error.strerror}", code="config-unwritable") from None


def parses_to(text: str, expected: ContextsFile) -> bool:
    """Whether a text parses to exactly these contexts; an invalid one stays invalid."""
    try:
        found = parse(text, "")
    except UserError:
        return False
    return (found.contexts, found.current_context, found.invalid) == (
        expected.contexts,
        expected.current_context,
        expected.invalid,
    )


def _edited(file: Path, edit: Edit, text: str, before: ContextsFile) -> tuple[str, ContextsFile]:
    try:
        return edit(text, before)
    except ValueError:
        raise _needs_manual_edit(file) from None


def _needs_manual_edit(file: Path) -> UserError:
    return UserError(
        f"cannot edit {file} automatically: the change would affect other parts, such as contexts that share a YAML "
        "anchor",
        code="config-unwritable",
        hint=faults.edit_hint(file),
    )


class Reading(msgspec.Struct, frozen=True):
    """What a text says, its faults, and the line of every key."""

    content: ContextsFile
    faults: Sequence[Fault] = ()
    lines: dict[tuple[str, ...], int] = {}


def parse(text: str, file: Path | str, *, skip: int = 0) -> ContextsFile:
    """Parse a contexts file. A context with faults is in `invalid`; the first `skip` lines do not count.

    UserError lists every fault if the file itself has one, such as invalid YAML: then none of its contexts is usable.
    """
    import yaml

    from yurt.config import yaml_text

    try:
        found, wrong = check_file(yaml_text.parse(text))
        if not wrong:
            return found
    except (yaml.YAMLError, RecursionError):
        pass
    reading = _read(text, file, skip)
    if any(context_of(fault) is None for fault in reading.faults):
        raise faults.error(file, reading.faults, reading.lines)
    return reading.content


def why_invalid(text: str, file: Path | str, name: str, *, skip: int = 0) -> UserError:
    """Return the error for all faults of one context, which `parse` found invalid."""
    return all_invalid(text, file, [name], skip=skip)[0]


def all_invalid(text: str, file: Path | str, names: Iterable[str], *, skip: int = 0) -> list[UserError]:
    """Return the error of each of these contexts. Reads the text once: it may have thousands."""
    reading = _read(text, file, skip)
    found: dict[str | None, list[Fault]] = {}
    for fault in reading.faults:
        found.setdefault(context_of(fault), []).append(fault)
    return [faults.error(file, found.get(name, []), reading.lines) for name in names]


def _read(text: str, file: Path | str, skip: int) -> Reading:
    """Parse again with line numbers, which is slower. UserError if the text is not YAML."""
    import yaml

    from yurt.config import yaml_text

    try:
        document, lines, twice = yaml_text.parse_with_lines(text)
    except yaml.YAMLError as error:
        line, problem = yaml_text.syntax_fault(text, error)
        raise faults.error(file, [Fault((), problem)], {(): max(1, line - skip)}) from None
    except RecursionError:
        raise faults.error(file, [Fault((), "is nested too deeply")], {}) from None
    content, wrong = check_file(document)
    wrong += [
        Fault(path, f"is set twice, in lines {one - skip} and {two - skip}; keep one") for path, one, two in twice
    ]
    invalid = content.invalid | {name for fault in wrong if (name := context_of(fault)) is not None}
    content = msgspec.structs.replace(
        content,
        contexts={name: each for name, each in content.contexts.items() if name not in invalid},
        invalid=invalid,
    )
    return Reading(content, wrong, {path: max(1, line - skip) for path, line in lines.items()})
