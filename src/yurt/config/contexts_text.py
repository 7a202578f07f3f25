"""Parses the text of a contexts file and reports every fault with its line."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from yurt.config import faults
from yurt.errors import UserError
from yurt.model.context import ContextsFile
from yurt.model.context_check import Fault, check_file, context_of


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
