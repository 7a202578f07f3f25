"""Edits the text of a contexts file without touching unrelated lines. Pure.

The text of a context is its own lines and the comments indented under it; comments above it stay in place.
"""

from __future__ import annotations

import io
import re
from collections.abc import Mapping
from typing import Any

import msgspec

from yurt.config import yaml_text

STEP = "  "


class Block(msgspec.Struct, frozen=True):
    """The position of one context in the text."""

    key: tuple[int, int]
    start: int
    end: int
    body: int
    """Where the lines of its body start; -1 if the body does not consist of separate lines."""


def blocks(text: str) -> dict[str, Block]:
    """Return the position of every context; empty if `contexts` is not in block style."""
    found = _section(text, "contexts")
    if found is None or not _is_block(found[1]):
        return {}
    pairs = found[1].value
    ends = [key.start_mark.index for key, _value in pairs[1:]] + [found[1].end_mark.index]
    return {key.value: _block(text, key, value, end) for (key, value), end in zip(pairs, ends, strict=True)}


def _block(text: str, key: Any, value: Any, limit: int) -> Block:
    start = text.rfind("\n", 0, key.start_mark.index) + 1
    indent = key.start_mark.index - start
    end = text.rfind("\n", 0, limit) + 1 if limit < len(text) else len(text)
    while end > start and _belongs_below(line := _last_line(text, end), indent):
        end -= len(line)
    body = -1
    if _is_block(value) and value.start_mark.index > key.end_mark.index:
        body = text.find("\n", key.end_mark.index) + 1
    return Block((key.start_mark.index, key.end_mark.index), start, end, body)


def _last_line(text: str, end: int) -> str:
    return text[text.rfind("\n", 0, end - 1) + 1 : end]


def _belongs_below(line: str, indent: int) -> bool:
    """Whether a line is blank, or a comment that belongs to the lines after it."""
    bare = line.strip()
    return not bare or (bare.startswith("#") and len(line) - len(line.lstrip()) <= indent)


def _is_block(node: Any) -> bool:
    return isinstance(getattr(node, "value", None), list) and not node.flow_style and node.id == "mapping"


def _section(text: str, name: str) -> tuple[Any, Any] | None:
    """Return the key node and the value node of a top-level key."""
    root = yaml_text.compose(text)
    pairs = root.value if root is not None and root.id == "mapping" else []
    return next(((key, value) for key, value in pairs if key.value == name), None)


def in_block_style(text: str) -> str:
    """Return the text with `contexts` in block style, so that one context can be changed alone; else ValueError."""
    root = yaml_text.compose(text)
    section = _section(text, "contexts")
    flow = section is not None and getattr(section[1], "flow_style", False) and section[1].value
    if root is None or (_is_block(root) and not flow):
        return text

    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    writer = YAML(typ="rt")
    writer.width = 1 << 30
    writer.preserve_quotes = True
    try:
        document = writer.load(text)
    except YAMLError as error:
        raise ValueError("the file cannot be converted to block style") from error
    document.fa.set_block_style()
    if flow:
        document["contexts"].fa.set_block_style()
    made = io.StringIO()
    writer.dump(document, made)
    return made.getvalue()


def _own(existing: dict[str, Block], name: str) -> Block:
    if name not in existing:
        raise ValueError(f"context '{name}' is not on separate lines")
    return existing[name]


def body_of(text: str, name: str) -> str:
    """Return the lines of a context's body without their indent; empty if they are not separate lines."""
    block = blocks(text).get(name)
    if block is None or block.body < 0:
        return ""
    step = _step(text, block)
    lines = text[block.body : block.end].split("\n")
    return "\n".join(line.removeprefix(step) if line.startswith(step) else line.lstrip(" ") for line in lines)


def put(text: str, name: str, body: str) -> tuple[str, int]:
    """Set the body of a context, in place or after the last one; return the text and the start of the body."""
    text = _with_section(_ended(in_block_style(text)))
    start, end, head, lines = _place(text, blocks(text), name, body)
    return text[:start] + head + lines + text[end:], start + len(head)


def put_all(text: str, bodies: Mapping[str, str]) -> str:
    """Set the bodies of several contexts. The text is parsed once."""
    text = _with_section(_ended(in_block_style(text)))
    existing = blocks(text)
    places = [_place(text, existing, name, body) for name, body in bodies.items()]
    made, at = list[str](), 0
    for start, end, head, lines in sorted(places, key=lambda each: each[:2]):
        made += [text[at:start], head, lines]
        at = end
    return "".join([*made, text[at:]])


def _place(text: str, existing: dict[str, Block], name: str, body: str) -> tuple[int, int, str, str]:
    """Return which part of the text becomes a context, the line with its name if that is new, and its body."""
    block = existing.get(name)
    if block is not None and block.body >= 0:
        return block.body, block.end, "", _indented(_ended(body), _step(text, block))
    at, indent = _after_last(text, existing)
    start, end = (at, at) if block is None else (block.start, block.end)
    return start, end, f"{indent}{_key(name)}:\n", _indented(_ended(body), indent + STEP)


def _step(text: str, block: Block) -> str:
    """Return the indent of the body's keys."""
    lines = text[block.body : block.end].split("\n")
    first = next(line for line in lines if line.strip() and not line.lstrip().startswith("#"))
    return first[: len(first) - len(first.lstrip())]


def _indented(text: str, by: str) -> str:
    return re.sub(r"^(?=[^\n])", by, text, flags=re.MULTILINE)


def copy(text: str, source: str, target: str) -> str:
    """Add a copy of a context's lines under another name."""
    text = _ended(in_block_style(text))
    existing = blocks(text)
    block = _own(existing, source)
    lines = text[block.start : block.key[0]] + _key(target) + text[block.key[1] : block.end]
    section = _section(text, "contexts")
    assert section
    body = next(value for key, value in section[1].value if key.value == source)
    for key, value in body.value if block.body >= 0 else []:
        if key.value in ("name", "context_name"):
            tail = block.end - value.end_mark.index
            lines = lines[: -tail - (value.end_mark.index - value.start_mark.index)] + _key(target) + lines[-tail:]
    at, _indent = _after_last(text, existing)
    return text[:at] + lines + text[at:]


def remove(text: str, name: str) -> str:
    """Remove the lines of a context."""
    text = _ended(in_block_style(text))
    block = _own(blocks(text), name)
    return text[: block.start] + text[block.end :]


def set_current(text: str, name: str | None) -> str:
    """Set current_context, or remove the key if the name is None."""
    text = _ended(in_block_style(text))
    section = _section(text, "current_context")
    if section is None:
        return text if name is None else _with_key(text, f"current_context: {_key(name)}\n")
    key, value = section
    if name is not None:
        space = "" if value.start_mark.index > key.end_mark.index + 1 else " "
        return text[: value.start_mark.index] + space + _key(name) + text[value.end_mark.index :]
    start = text.rfind("\n", 0, key.start_mark.index) + 1
    return text[:start] + text[text.find("\n", value.end_mark.index) + 1 :]


def _key(name: str) -> str:
    """Return a name quoted so that every YAML version reads it as text."""
    return yaml_text.dump({name: None}).rpartition(":")[0]


def _ended(text: str) -> str:
    return text if not text or text.endswith("\n") else text + "\n"


def _with_section(text: str) -> str:
    """Return the text with a `contexts` key to which a context can be added."""
    section = _section(text, "contexts")
    if section is None:
        return _with_key(text, "contexts:\n")
    key, value = section
    if _is_block(value):
        return text
    after: int = max(value.end_mark.index, key.end_mark.index + 1)
    return text[: key.end_mark.index] + ":" + text[after:]


def _with_key(text: str, line: str) -> str:
    """Append a top-level key with the indent of the others."""
    root = yaml_text.compose(text)
    if root is None:
        return text + line
    at: int = text.rfind("\n", 0, root.end_mark.index) + 1 if root.end_mark.index < len(text) else len(text)
    indent: str = " " * root.start_mark.column
    return text[:at] + indent + line + text[at:]


def _after_last(text: str, existing: dict[str, Block]) -> tuple[int, str]:
    """Return the position and the indent for a new context."""
    if existing:
        last = list(existing.values())[-1]
        return last.end, text[last.start : last.key[0]]
    section = _section(text, "contexts")
    assert section
    return text.find("\n", section[0].end_mark.index) + 1, " " * section[0].start_mark.column + STEP
