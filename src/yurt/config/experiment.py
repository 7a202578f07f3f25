"""Reads an experiment from a file (`--config`): neptune.yaml as mrunner read it, or yurt.yaml.

Parameter values are typed as in YAML 1.2: 3, 0.1, 1e-3, true and null have their types; everything else, and every
quoted value, is text; a list is one value. Under `grid` and `zip` a list contains the values of its key, and text is
parsed as on the command line, so that 0..9 and "@seeds.txt" work. Name, note and tags are always text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from yurt.config import faults, services, stage
from yurt.config.project import KEYS as SETTINGS
from yurt.config.text import content_of, text_of
from yurt.errors import UserError
from yurt.model import params
from yurt.model.context_check import GUESSED, Fault, described, unknown
from yurt.model.context_keys import tidy
from yurt.model.grid import Axis, GridError, checked
from yurt.model.grid_text import axes, column

EXAMPLES = {
    "name": "cifar",
    "project": "alice/vision",
    "note": "a larger batch",
    "description": "a larger batch",
    "tags": "[baseline]",
    "parameters": "{lr: 0.1, layers: 3}",
    "grid": "{lr: [0.1, 0.01], seed: 0..4}",
    "zip": "{width: [64, 128], depth: [2, 4]}",
}

OF_PROJECT = (*SETTINGS, services.KEY, stage.KEY)

OF_NEPTUNE = (
    *("host", "port", "username", "password", "open-webbrowser", "executable", "metric", "pip-requirements-file"),
    *("exclude", "paths-to-copy", "channels", "backup", "storage-url", "neptune-storage", "ml-framework", "worker"),
)
"""Keys of neptune.yaml that mrunner ignored, or that belong to a context in yurt."""


class Experiment(msgspec.Struct, frozen=True):
    """The content of an experiment file."""

    project: str = ""
    name: str = ""
    note: str = ""
    tags: tuple[str, ...] = ()
    parameters: Mapping[str, Any] = {}
    grids: Sequence[Sequence[Axis]] = ()
    """The axes of each grid, in order. Empty if the file has neither grid nor zip."""
    warnings: Sequence[str] = ()


def read(file: Path, may_read: Callable[[Path], None] = lambda _file: None) -> Experiment:
    """Read an experiment file. UserError lists every fault with its line.

    `may_read` is called with each file that it names for values, and raises an error if that must not be read.
    """
    import yaml

    from yurt.config import yaml_text, yaml_typed

    if not file.is_file():
        hint = "check the path, which is relative to the working directory"
        raise UserError(f"--config: file '{file}' not found", code="usage", hint=hint)
    text = text_of(file)
    try:
        try:
            texts, lines, twice = yaml_text.parse_with_lines(text)
        except ValueError:  # an explicit tag such as !!int on another value; this parser reports its line
            yaml_typed.parse(text)
            raise
        if twice:
            found = [Fault(path, f"is set twice, in lines {one} and {two}; keep one") for path, one, two in twice]
            raise faults.error(file, found, lines)
        typed, words = yaml_typed.parse(text)
    except yaml.YAMLError as error:
        line, problem = yaml_text.syntax_fault(text, error)
        raise faults.error(file, [Fault((), problem)], {(): line}) from None
    except RecursionError:
        raise faults.error(file, [Fault((), "is nested too deeply")], {}) from None
    if texts is None or not isinstance(texts, dict):
        problem = f"must be a mapping of keys, not {described(texts)}"
        raise faults.error(file, [Fault((), problem, f"parameters: {EXAMPLES['parameters']}")], lines)
    reader = _Reader(file, texts, typed, may_read)
    made = reader.experiment()
    if reader.faults:
        raise faults.error(file, reader.faults, lines)
    tops = {line: path[0] for path, line in lines.items() if len(path) == 1}
    warnings = [
        f"{file}:{line}: '{word}' is read as text; write true or false for a boolean"
        for line, word in words
        if tops.get(max((top for top in tops if top <= line), default=0)) in ("parameters", "grid", "zip")
    ]
    return msgspec.structs.replace(made, warnings=[*reader.warnings, *warnings])


class _Reader:
    """Reads one file key by key and collects its faults."""

    def __init__(
        self, file: Path, texts: Mapping[Any, Any], typed: Mapping[Any, Any], may_read: Callable[[Path], None]
    ) -> None:
        self.file, self.may_read = file, may_read
        self.texts = texts
        self.typed = typed
        self.faults: list[Fault] = []
        self.warnings: list[str] = []

    def experiment(self) -> Experiment:
        self._check_keys()
        if self.texts.get("note") is not None and self.texts.get("description") is not None:
            self._wrong(("description",), "has the same meaning as note; keep one of them")
        tags = self._tidied("tags", "tags") or ()
        parameters = self._parameters()
        return Experiment(
            project=self._tidied("project", "name") or "",
            name=self._tidied("name", "name") or "",
            note=self._tidied("note", "name") or self._tidied("description", "name") or "",
            tags=tags,
            parameters=parameters,
            grids=self._grids(set(parameters)),
        )

    def _wrong(self, path: tuple[str, ...], problem: str, example: str = "") -> None:
        self.faults.append(Fault(path, problem, example))

    def _check_keys(self) -> None:
        ignored = []
        for key in map(str, self.texts):
            if key in EXAMPLES:
                continue
            if key in OF_PROJECT and self.file.name == "yurt.yaml":
                continue
            if key in OF_NEPTUNE:
                ignored.append(key)
            elif key in OF_PROJECT:
                self._wrong((key,), "is a project setting, not a key of an experiment; move it to yurt.yaml")
            else:
                similar = EXAMPLES if len(self.faults) < GUESSED else {}
                self.faults.append(unknown((key,), list(EXAMPLES), similar, "an experiment"))
        if ignored:
            self.warnings.append(f"{self.file}: ignored keys that yurt does not use: {', '.join(ignored)}")

    def _tidied(self, key: str, form: str) -> Any:
        value = self.texts.get(key)
        try:
            return None if value is None else tidy(form, value)
        except ValueError as problem:
            self._wrong((key,), f"{problem}, not {described(value)}", f"{key}: {EXAMPLES[key]}")
            return None

    def _parameters(self) -> dict[str, Any]:
        body = self.typed.get("parameters")
        if isinstance(body, list):
            body = self._declared(body)
        return {key: self._checked(("parameters", key), value) for key, value in self._keys(("parameters",), body)}

    def _declared(self, body: list[Any]) -> dict[str, Any]:
        """Return the defaults in neptune's oldest format: a list of {name: lr, type: double, default: 0.1}."""
        found: dict[str, Any] = {}
        for number, (each, text) in enumerate(zip(body, self.texts["parameters"], strict=True), 1):
            if not isinstance(each, dict) or not isinstance(text.get("name"), str):
                example = "parameters: {lr: 0.1}, or {name: lr, type: double, default: 0.1} in the list"
                self._wrong(("parameters",), f"has a list item without a name (item {number})", example)
            elif text["name"] in found:
                self._wrong(("parameters",), f"lists '{text['name']}' twice")
            elif each.get("default") is not None:
                found[text["name"]] = text["default"] if each.get("type") == "string" else each["default"]
        return found

    def _keys(self, path: tuple[str, ...], body: Any) -> list[tuple[str, Any]]:
        """Return the keys with valid names of a mapping of parameters, and their values."""
        if body is None:
            return []
        if not isinstance(body, dict):
            self._wrong(
                path, f"must be a mapping of keys to values, not {described(body)}", f"{path[0]}: {EXAMPLES[path[0]]}"
            )
            return []
        good = []
        for key, value in body.items():
            name = key if isinstance(key, str) else params.as_text(key)
            try:
                params.check_key(name)
                good.append((name, value))
            except ValueError as problem:
                self._wrong((*path, name), f"is not allowed: {problem}")
        return good

    def _checked(self, path: tuple[str, ...], value: Any) -> Any:
        try:
            return checked(value)
        except ValueError as problem:
            self._wrong(path, str(problem))
            return None

    def _grids(self, taken: set[str]) -> list[list[Axis]]:
        """Return the axes of every grid in the file."""
        given = {key: self.typed[key] for key in ("grid", "zip") if key in self.typed}
        bodies = given["grid"] if isinstance(given.get("grid"), list) else [given.get("grid")]
        for key, parts in (("grid", bodies or [None]), ("zip", [given.get("zip")])):
            if key in given and any(part in (None, {}) for part in parts):
                self._wrong((key,), "is empty", f"{key}: {EXAMPLES[key]}")
        together = self._columns("zip", given.get("zip"), taken)
        try:
            return [axes(self._columns("grid", each, taken | set(together)), together) for each in bodies if given]
        except GridError as error:
            self._wrong(("zip",), f"is invalid: {error.problem}")
            return []

    def _columns(self, kind: str, body: Any, taken: set[str]) -> dict[str, Sequence[Any]]:
        found: dict[str, Sequence[Any]] = {}
        for key, value in self._keys((kind,), body):
            if key in taken:
                self._wrong((kind, key), "is set twice; set a parameter in only one of parameters, grid and zip")
                continue
            try:
                found[key] = self._values(value)
            except GridError as error:
                self._wrong((kind, key), error.problem, f"{key}: {error.hint}" if error.hint else "")
            except ValueError as problem:
                self._wrong((kind, key), str(problem))
        return found

    def _values_in(self, name: str) -> str:
        """Return the content of a file with values, which an experiment file names relative to itself."""
        self.may_read(self.file.parent / name)
        return content_of(self.file.parent / name).decode("utf-8-sig")

    def _values(self, value: Any) -> Sequence[Any]:
        if isinstance(value, str):
            return column(value, self._values_in)
        if isinstance(value, dict):
            raise GridError("must be a list of values, not a mapping", "[0.1, 0.01]")
        values = checked(value if isinstance(value, list) else [value])
        if not values:
            raise GridError("has no values", "[0.1, 0.01]")
        return list(values)
