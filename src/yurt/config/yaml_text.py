"""YAML where every scalar is text, duplicate keys are errors, and the line of every key is available.

The key decides the type of its value, so `12:00:00`, `0123`, `1.10` and `no` stay as typed. Only an empty value, ~ and
null are None.
"""

from __future__ import annotations

import re
from typing import Any

import yaml

from yurt.config.text import DEEPEST

Path = tuple[str, ...]
Lines = dict[Path, int]

_DEEPEST = 6  # yurt's files are not nested deeper; an anchor may contain itself


_HARMLESS = 4000
"""Characters that, without an alias, cannot nest so deeply that the parser in C, which makes values by recursion,
crashes."""

MOST_VALUES = 150_000
"""Maximum number of values in a file once every alias is replaced by what it stands for."""


def check_size(text: str, most: int = MOST_VALUES, *, endless: bool = False) -> None:
    """yaml.YAMLError if a text is nested too deeply, or if it has more values than `most`, also by its aliases.

    `endless`: also if a list or mapping contains itself; else the checks of its key report that.
    The parser in C needs no stack for nesting, but what makes values from its events does, and crashes.
    """
    events: Any = yaml.parse(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    opened: list[tuple[str | None, int]] = []
    sizes: dict[str | None, int] = {}
    values, problem = 0, ""
    for event in events:
        if isinstance(event, yaml.ScalarEvent):
            values += 1
            if event.anchor is not None:
                sizes[event.anchor] = 1
        elif isinstance(event, yaml.AliasEvent):
            values += sizes.get(event.anchor, 1)
        elif isinstance(event, yaml.CollectionStartEvent):
            opened.append((event.anchor, values))
            sizes[event.anchor] = most if endless else 1  # while it is open, an alias to it has no end
            values += 1
            if len(opened) > DEEPEST:
                problem = f"it is nested more than {DEEPEST} levels deep"
        elif isinstance(event, yaml.CollectionEndEvent):
            anchor, before = opened.pop()
            sizes[anchor] = values - before
        if values > most:
            problem = f"it has more than {most:,} values, with aliases"
        if problem:
            raise yaml.MarkedYAMLError(problem=problem, problem_mark=event.start_mark)


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    yaml_implicit_resolvers: dict[str | None, list[tuple[str, re.Pattern[str]]]] = {}

    def __init__(self, text: str) -> None:
        if len(text) > _HARMLESS or "&" in text:
            check_size(text)
        super().__init__(text)


_Loader.add_implicit_resolver("tag:yaml.org,2002:null", re.compile(r"(?:~|null|Null|NULL|)\Z"), ["~", "n", "N", ""])
_Loader.add_implicit_resolver("tag:yaml.org,2002:merge", re.compile(r"<<\Z"), ["<"])


class Strict(_Loader):
    def flatten_mapping(self, node: Any) -> None:
        keys = [key.value for key, _value in node.value if isinstance(key, yaml.ScalarNode)]
        if len(set(keys)) < len(keys):
            raise yaml.constructor.ConstructorError(None, None, "duplicate key", node.start_mark)
        super().flatten_mapping(node)


class _Dumper(yaml.SafeDumper):
    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, indentless and flow)  # indent list items below their key


def _as_text(dumper: Any, text: str) -> Any:
    style = None if text.isprintable() else '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _as_text)


def parse(text: str) -> Any:
    """Parse a text, fast. yaml.YAMLError if it is not valid YAML, has duplicate keys or is nested too deeply."""
    try:
        return yaml.load(text, Loader=Strict)
    except RecursionError:
        raise yaml.YAMLError("it is nested too deeply") from None


def parse_with_lines(text: str) -> tuple[Any, Lines, list[tuple[Path, int, int]]]:
    """Return the parsed text, the line of every key, and duplicate keys as (path, first line, second line)."""
    loader = _Loader(text)
    try:
        node = loader.get_single_node()
        lines: Lines = {}
        twice: list[tuple[Path, int, int]] = []
        if node is None:
            return None, lines, twice
        _walk(node, (), lines, twice)
        return loader.construct_document(node), lines, twice
    except RecursionError:
        raise yaml.YAMLError("it is nested too deeply") from None
    finally:
        loader.dispose()


def _walk(node: Any, path: Path, lines: Lines, twice: list[tuple[Path, int, int]]) -> None:
    if not isinstance(node, yaml.MappingNode) or len(path) == _DEEPEST:
        return
    own: dict[str, int] = {}
    for key, value in node.value:
        if not isinstance(key, yaml.ScalarNode):
            continue
        if key.tag == "tag:yaml.org,2002:merge":
            for each in value.value if isinstance(value, yaml.SequenceNode) else [value]:
                _walk(each, path, lines, [])
            continue
        line = key.start_mark.line + 1
        if key.value in own:
            twice.append(((*path, key.value), own[key.value], line))
        own.setdefault(key.value, line)
        lines[(*path, key.value)] = line
        _walk(value, (*path, key.value), lines, twice)


def compose(text: str) -> Any:
    """Return the node tree of the text, with start and end marks."""
    return yaml.compose(text, Loader=_Loader)


def dump(value: Any) -> str:
    """Return YAML in block style that `parse` reads back unchanged."""
    made: str = yaml.dump(
        value, Dumper=_Dumper, sort_keys=False, default_flow_style=False, allow_unicode=True, width=1 << 30
    )
    return made


def syntax_fault(text: str, error: yaml.YAMLError) -> tuple[int, str]:
    """Return the line and the description of a syntax error."""
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    if mark is None:
        position = getattr(error, "position", 0)
        line = text.encode()[:position].count(b"\n") + 1
        return line, f"is not valid YAML: {getattr(error, 'reason', None) or 'unreadable'}"
    written = text.split("\n")
    line = min(mark.line, len(written) - 1)
    if re.match(r" *\t", written[line]):
        return line + 1, "is not valid YAML: the indentation contains a tab; indent with spaces"
    about = [getattr(error, "context", None), getattr(error, "problem", None)]
    return mark.line + 1, "is not valid YAML: " + ", ".join(part for part in about if part)
