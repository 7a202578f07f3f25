"""Reads the file of a site profile, and reports its faults with their lines."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from yurt.config import faults, yaml_text
from yurt.errors import UserError
from yurt.model.context_check import Fault, check_body, unknown
from yurt.model.profile import SAFE_KEYS, Folder, Module, Profile, Storage

LARGEST = 64 * 1024
"""Maximum size of a profile in bytes."""

OWN = ("name", "title", "hosts", "clusters", "marks", "base")
"""Keys that a profile does not take over from its base."""

Lines = Mapping[tuple[str, ...], int]
Base = Callable[[str], dict[str, Any] | None]
"""Returns the content of the profile that a `base` key names; None if there is none."""


def parse(text: str, file: Path | str, *, base: Base) -> Profile:
    """Return the profile of a text. UserError names the line and the key of each fault."""
    document, lines = content(text, file)
    if "base" in document:
        inherited = base(str(document["base"]))
        if inherited is None:
            raise faults.error(file, [Fault(("base",), f"is '{document['base']}', which is not a profile")], lines)
        document = _merged(document, inherited)
    return _profile(document, file, lines)


def content(text: str, file: Path | str) -> tuple[dict[str, Any], Lines]:
    """Return the parsed YAML of a profile, and the line of each key."""
    import yaml

    if len(text) > LARGEST:
        raise UserError(f"{file} is larger than {LARGEST // 1024} KB", code="config-invalid")
    try:
        document, lines, twice = yaml_text.parse_with_lines(text)
    except yaml.YAMLError as error:
        line, problem = yaml_text.syntax_fault(text, error)
        raise faults.error(file, [Fault((), problem)], {(): line}) from None
    if not isinstance(document, dict):
        raise faults.error(file, [Fault((), "must be a mapping with the keys of a profile", "name: big")], lines)
    if "*" in text and re.search(r"(^|[\s\[{,:-])\*\w", text) and "&" in text:
        raise faults.error(file, [Fault((), "uses a YAML anchor, which profiles may not contain")], lines)
    if twice:
        wrong = [Fault(path, f"is set twice, in lines {one} and {two}; keep one") for path, one, two in twice]
        raise faults.error(file, wrong, lines)
    return document, lines


def _merged(document: dict[str, Any], inherited: dict[str, Any]) -> dict[str, Any]:
    found = {key: value for key, value in inherited.items() if key not in OWN}
    own = {key: value for key, value in document.items() if key != "base"}
    sources = [document.get("sources"), inherited.get("sources")]
    if all(isinstance(each, list) for each in sources):
        own["sources"] = [*(document["sources"]), *(inherited["sources"])]
    return found | own


def _profile(document: dict[str, Any], file: Path | str, lines: Lines) -> Profile:
    fields = Profile.__struct_fields__
    wrong = [
        unknown((str(key),), fields, dict.fromkeys(fields, "…"), "a profile") for key in document if key not in fields
    ]
    wrong += [Fault((key,), "is missing") for key in ("name", "title", "sources") if key not in document]
    if wrong:
        raise faults.error(file, wrong, lines)
    try:
        found = msgspec.convert(document, Profile, strict=False)
    except msgspec.ValidationError as error:
        raise faults.error(file, [_fault(document, error)], lines) from None
    values, wrong = _context(found.context)
    wrong += [
        Fault(("hosts",), f"has '{glob}', which also matches other sites") for glob in found.hosts if greedy(glob)
    ]
    if wrong:
        raise faults.error(file, wrong, lines)
    return msgspec.structs.replace(found, context=values)


def _context(keys: Mapping[str, Any]) -> tuple[dict[str, Any], list[Fault]]:
    """Return the context keys of a profile in canonical form, and their faults."""
    wrong = [
        Fault(("context", key), f"is not a key that a profile may set; these are: {', '.join(SAFE_KEYS)}")
        for key in keys
        if key not in SAFE_KEYS
    ]
    if wrong:
        return {}, wrong
    values, wrong = check_body(keys, SAFE_KEYS, "a profile", ("context",))
    for key, kind, rule in (
        ("modules_to_load", tuple[Module, ...], "may contain only names of modules, not paths"),
        ("wheelhouse", tuple[Folder, ...], "may contain only absolute folders, not in /tmp"),
        ("storage_dir", Storage, "must be a folder such as $SCRATCH or /scratch/$USER"),
        ("scratch_dir", Storage, "must be a folder such as $SCRATCH or /scratch/$USER"),
    ):
        try:
            if key in values:
                msgspec.convert(values[key], kind)
        except msgspec.ValidationError:
            wrong.append(Fault(("context", key), rule))
    return values, wrong


def _fault(document: dict[str, Any], error: msgspec.ValidationError) -> Fault:
    problem, _, path = str(error).partition(" - at `")
    path = path.removeprefix("key` in `")
    if found := re.match(r"\$\.(\w+)\[\.\.\.\]", path):
        path = path.replace("[...]", f".{_wrong_key(document, found[1])}", 1)
    keys = tuple(part for part in re.split(r"[.\[\]]+", path.strip("`$")) if part)
    found = re.fullmatch(r"Object contains unknown field `(.*)`", problem)
    if found:
        return Fault((*keys, found[1]), "is not a key of a profile")
    if problem.startswith("Expected `str` matching regex"):
        return Fault(keys, f"is not valid: '{_value(document, keys)}'{RULES.get(keys[0] if keys else '', '')}")
    return Fault(keys, f"is invalid: {problem[:1].lower()}{problem[1:]}")


RULES = {
    "name": "; use at most 40 lower-case letters, digits and hyphens",
    "hosts": "; use host names in lower case, with * and ? for the parts that differ",
    "clusters": "; use names in lower case, with * and ? for the parts that differ",
    "documentation": "; it must begin with https://",
    "modules": "; use the names of modules, not paths",
}
"""How the values of some fields must look."""


def _value(document: Any, keys: Sequence[str]) -> str:
    """Return the value at a path of keys, shortened."""
    for key in keys:
        if isinstance(document, list) and key.isdigit():
            document = document[int(key)]
        elif isinstance(document, dict):
            document = document.get(key, "")
    return str(document)[:60]


def _wrong_key(document: dict[str, Any], field: str) -> str:
    """Return the key of a mapping whose value is invalid, which msgspec does not name."""
    for key, value in document[field].items():
        try:
            msgspec.convert({**document, field: {key: value}}, Profile, strict=False)
        except msgspec.ValidationError:
            return str(key)
    return ""


def greedy(glob: str) -> bool:
    """Whether a pattern may match hosts of other sites: after its last wildcard it fixes fewer than two words."""
    fixed = re.split(r"[*?]", glob)[-1]
    return glob != fixed and (not fixed.startswith((".", "-")) or len([part for part in fixed.split(".") if part]) < 2)
