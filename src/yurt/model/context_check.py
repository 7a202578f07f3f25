"""Validates a parsed contexts file or project settings. Pure.

Reports every fault, not only the first. The caller adds the line numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import msgspec

from yurt.model.context import LOCAL, Context, ContextsFile
from yurt.model.context_keys import ALIASES, EXAMPLES, KEYS, RESOURCES, canonical_key, is_name, is_unused, pairs, tidy

FILE_EXAMPLES = {"contexts": "{big: {type: slurm, slurm_url: alice@big.example}}", "current_context": "big"}


class Fault(msgspec.Struct, frozen=True):
    """One fault: the path of its key, and the problem, which continues a sentence that starts with the key."""

    path: tuple[str, ...]
    problem: str
    example: str = ""

    @property
    def sentence(self) -> str:
        example = f" (example: `{self.example}`)" if self.example else ""
        return f"{'.'.join(self.path) or 'the file'} {self.problem}{example}"


def check_file(document: Any) -> tuple[ContextsFile, list[Fault]]:
    """Return the valid contexts of a parsed contexts file, and every fault in it.

    A fault whose path has the name of a context makes only this context invalid; use none of them with another fault.
    """
    if document is None:
        return ContextsFile(), []
    if not isinstance(document, dict):
        example = f"contexts: {FILE_EXAMPLES['contexts']}"
        problem = f"must be a mapping with the key contexts, not {described(document)}"
        return ContextsFile(), [Fault((), problem, example)]
    faults = [
        unknown((str(key),), list(FILE_EXAMPLES), FILE_EXAMPLES, "a contexts file")
        for key in document
        if key not in FILE_EXAMPLES
    ]
    bodies = document.get("contexts")
    if bodies is not None and not isinstance(bodies, dict):
        faults.append(_wrong(("contexts",), "must be a mapping of names to contexts", bodies, FILE_EXAMPLES))
        bodies = None
    found, unused = {}, {}
    for name, body in (bodies or {}).items():
        used, ignored = _without_unused(name, body)
        context, wrong = _check_context(name, used)
        faults += wrong
        if context is not None:
            found[name] = context
        if context is not None and ignored:
            unused[name] = tuple(ignored)
    current = document.get("current_context")
    current = None if current == "" else current  # mrunner writes an empty text if there is none
    faults += _check_current(current, [*(bodies or {}), LOCAL.name])
    invalid = frozenset(name for fault in faults if (name := context_of(fault)) is not None)
    return ContextsFile(found, current, invalid, unused), faults


def context_of(fault: Fault) -> str | None:
    """Return the name of the context that has a fault; None for a fault of the file."""
    return fault.path[1] if len(fault.path) > 1 and fault.path[0] == "contexts" else None


def _without_unused(name: Any, body: Any) -> tuple[Any, list[str]]:
    """Return the body of a context without the keys that yurt does not use, and these keys."""
    if not isinstance(body, dict):
        return body, []
    # mrunner's `context copy` keeps the old context_name.
    unused = [key for key, value in body.items() if is_unused(key) or (key == "context_name" and value != name)]
    used = {key: value for key, value in body.items() if key not in unused}
    try:
        amounts = pairs(used.get("resources"))
    except ValueError:
        return used, unused
    if "tpu" not in amounts:
        return used, unused
    used["resources"] = {key: value for key, value in amounts.items() if key != "tpu"}
    return used, [*unused, "resources.tpu"]


def _check_current(current: Any, names: Sequence[Any]) -> list[Fault]:
    path = ("current_context",)
    if current is None or current in names:
        return []
    if not isinstance(current, str):
        return [_wrong(path, "must be the name of a context", current, FILE_EXAMPLES)]
    near = nearest(current, [name for name in names if isinstance(name, str)])
    return [Fault(path, f"is '{current}', which does not exist" + (f"; did you mean '{near}'?" if near else ""))]


def _check_context(name: Any, body: Any) -> tuple[Context | None, list[Fault]]:
    path = ("contexts", str(name))
    if not is_name(name):
        rule = "is not a valid context name: use letters, digits, '.', '_' and '-', starting with a letter or a digit"
        return None, [Fault(path, rule, "big-gpu: {type: slurm, slurm_url: alice@big.example}")]
    if not isinstance(body, dict):
        return None, [Fault(path, f"must be a mapping of keys to values, not {described(body)}", "type: slurm")]
    values, faults = check_body(body, KEYS, "a context", path)
    if values.get("name", name) != name:
        faults.append(
            Fault((*path, "name"), f"is '{values['name']}', but the context is named '{name}'; remove the key")
        )
    wrong = {fault.path[-1] for fault in faults}
    if "type" not in values and not wrong & {"type", "backend_type"}:
        faults.append(Fault((*path, "type"), "is missing", "type: slurm"))
    if values.get("type") == "slurm" and "slurm_url" not in {*values, *wrong}:
        faults.append(Fault((*path, "slurm_url"), "is missing", f"slurm_url: {EXAMPLES['slurm_url']}"))
    if isinstance(uri := values.get("mlflow_uri"), str) and (problem := _wrong_store(uri)):
        faults.append(Fault((*path, "mlflow_uri"), problem, f"mlflow_uri: {EXAMPLES['mlflow_uri']}"))
    return None if faults else msgspec.convert({**values, "name": name}, Context), faults


def _wrong_store(uri: str) -> str:
    from yurt.model.addresses import has_password, mlflow_problem

    if has_password(uri):
        return "contains a password, which would be recorded; use `yurt secret set MLFLOW_TRACKING_PASSWORD`"
    return mlflow_problem(uri)


def check_body(
    body: Mapping[Any, Any],
    known: Sequence[str],
    what: str,
    path: tuple[str, ...] = (),
    more: Mapping[str, str] = MappingProxyType({}),
) -> tuple[dict[str, Any], list[Fault]]:
    """Return the values of one context or project by canonical key, in canonical form, and every fault.

    `more`: other keys that are allowed, with an example of each. Their values are the caller's to check.
    """
    examples = {key: EXAMPLES[key] for key in known}
    examples |= {other: EXAMPLES[key] for other, key in ALIASES.items() if _top(key) in known}
    examples |= more
    values: dict[str, Any] = {}
    faults: list[Fault] = []
    for key, value in body.items():
        here, real = (*path, str(key)), canonical_key(str(key), value)
        if key in more:
            continue
        if _top(real) in KEYS and _top(real) not in known:
            faults.append(Fault(here, f"is a key of a context, not of {what}; move it to contexts.yaml"))
        elif _top(real) not in known:
            faults.append(unknown(here, [*known, *more], examples if len(faults) < GUESSED else {}, what))
        elif value is None:
            continue
        elif real == "resources":
            _check_resources(value, here, values, faults)
        else:
            _take(real, value, here, values, faults)
    return values, faults


def _top(key: str) -> str:
    return key.partition(".")[0]


def _check_resources(value: Any, path: tuple[str, ...], values: dict[str, Any], faults: list[Fault]) -> None:
    try:
        found = pairs(value)
    except ValueError:
        faults.append(_wrong(path, "must be a mapping of cpu, gpu and mem to amounts", value, EXAMPLES))
        return
    for key, each in found.items():
        if key not in RESOURCES:
            examples = {name: EXAMPLES[f"resources.{name}"] for name in RESOURCES}
            faults.append(unknown((*path, key), RESOURCES, examples, "resources"))
        elif each is not None:
            _take(f"resources.{key}", each, (*path, key), values, faults)


def _take(key: str, value: Any, path: tuple[str, ...], values: dict[str, Any], faults: list[Fault]) -> None:
    """Store a value, or add its fault."""
    try:
        tidied = tidy(key, value)
    except ValueError as problem:
        faults.append(_wrong(path, str(problem), value, {path[-1]: EXAMPLES[key]}))
        return
    group, _, inner = key.rpartition(".")
    place = values.setdefault(group, {}) if group else values
    if place.setdefault(inner, tidied) != tidied:
        faults.append(Fault(path, f"conflicts with another name of the same key, {key}; keep one of them"))


GUESSED = 50
"""For how many unknown keys of a file a similar one is looked for, which takes milliseconds each."""


def unknown(path: tuple[str, ...], known: Sequence[str], examples: Mapping[str, str], what: str) -> Fault:
    """Return the fault of an unknown key, with a similar key and its example, else with all valid keys."""
    near = nearest(path[-1], list(examples))
    if not near:
        return Fault(path, f"is not a key of {what}; valid keys: {', '.join(known)}")
    example = examples[near]
    return Fault(path, f"is not a key of {what}; did you mean '{near}'?", f"{near}: {example}")


LONGEST_WORD = 200
"""Characters of a word that are compared: no key is as long."""


def nearest(word: str, known: Sequence[str]) -> str:
    """Return the most similar known word, or an empty string."""
    from difflib import get_close_matches

    return next(iter(get_close_matches(word[:LONGEST_WORD], known, n=1)), "")


def _wrong(path: tuple[str, ...], problem: str, value: Any, examples: dict[str, str]) -> Fault:
    return Fault(path, f"{problem}, not {described(value)}", f"{path[-1]}: {examples[path[-1]]}")


def described(value: Any) -> str:
    """Return a short description of a value for a message."""
    if value is None:
        return "an empty value"
    if isinstance(value, dict | list | tuple):
        return "a mapping" if isinstance(value, dict) else "a list"
    text = str(value)
    return f"'{text}'" if len(text) <= 60 else f"'{text[:57]}…'"
