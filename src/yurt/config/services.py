"""The services of a project: `services` in yurt.yaml, or [tool.yurt.services.NAME] in pyproject.toml."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from yurt.model.context_check import Fault

KEY = "services"
EXAMPLE = '{app: "python app.py --port {port}"}'

PLACES = {"jupyter": "folder", "tensorboard": "logdir", "mlflow": "store"}
"""Programs that yurt knows, and the option of each that says which files of the site it opens."""

RESERVED = ("run", "list", "open", "stop")
"""Commands of `yurt serve`, which cannot be names of services."""

_COMMAND = '"python app.py --port {port}"'
_EXAMPLES = {"folder": "$HOME/notebooks", "logdir": "$SCRATCH/logs", "store": "$SCRATCH/mlflow.db"}


class NamedService(msgspec.Struct, frozen=True):
    """A service of a project."""

    words: list[str]
    """Its command; empty for a program that yurt knows."""
    place: str
    """For such a program: the files of the site that it opens. Empty if the entry does not say."""
    settings: dict[str, Any]
    lines: dict[str, int]
    """The lines of its settings in the file."""


def read(
    body: Any, known: tuple[str, ...], prefix: tuple[str, ...], lines: Mapping[tuple[str, ...], int]
) -> tuple[dict[str, NamedService], list[Fault]]:
    """Return the services of a project by name, and every fault. `known` are the settings of a project."""
    from yurt.model.context_check import Fault, described

    if body is None:
        return {}, []
    if not isinstance(body, dict):
        problem = f"must be a mapping of names to services, not {described(body)}"
        return {}, [Fault(prefix, problem, f"{KEY}: {EXAMPLE}")]
    found: dict[str, NamedService] = {}
    faults: list[Fault] = []
    for name, each in body.items():
        path = (*prefix, str(name))
        wrong = _wrong_name(name, path)
        if not wrong:
            inner = {one[len(path) :]: line for one, line in lines.items() if one[: len(path)] == path}
            found[name], wrong = _service(path, each, known, inner)
        faults += wrong
    return found, faults


def _wrong_name(name: Any, path: tuple[str, ...]) -> list[Fault]:
    from yurt.model.context_check import Fault
    from yurt.model.context_keys import is_name

    if name in RESERVED:
        return [Fault(path, f"has the name of a command, `yurt serve {name}`; choose another name")]
    if not is_name(name):
        rule = "is not a valid name: use letters, digits, '.', '_' and '-', starting with a letter or a digit"
        return [Fault(path, rule, f"app: {_COMMAND}")]
    return []


def _service(
    path: tuple[str, ...], body: Any, known: tuple[str, ...], lines: dict[tuple[str, ...], int]
) -> tuple[NamedService, list[Fault]]:
    from yurt.config.contexts import own_lines
    from yurt.model.context_check import Fault, check_body, described

    name, faults = path[-1], list[Fault]()
    own = PLACES.get(name, "command")
    if isinstance(body, str) or (body is None and own == "command"):
        body = {"command": body}
    if body is None:
        body = {}
    if not isinstance(body, dict):
        needed = "a command, or a mapping with it" if own == "command" else "a mapping of settings"
        faults.append(Fault(path, f"must be {needed}, not {described(body)}", f"{name}: {{{_example(own)}}}"))
        return NamedService([], "", {}, {}), faults
    not_own = [key for key in ("name", *(key for key in known if key.startswith("dev_"))) if key in body]
    faults += [Fault((*path, key), "is a setting of a project, not of a service; remove it") for key in not_own]
    for key in ("context", "context_name"):
        if key in body:
            faults.append(
                Fault((*path, key), f"is not a key of a service; choose with `yurt serve {name} --context NAME`")
            )
            not_own.append(key)
    if own != "command" and "command" in body:
        faults.append(Fault((*path, "command"), f"is not possible: yurt knows how to start {name}; remove it"))
        not_own.append("command")
    rest = {key: value for key, value in body.items() if key not in not_own}
    settings, wrong = check_body(rest, known, "a service", path, {own: _example(own).partition(": ")[2]})
    faults += wrong
    words = _words(body.get("command"), (*path, "command"), faults) if own == "command" else []
    place = body.get(own) if own != "command" else ""
    if place is not None and not isinstance(place, str):
        faults.append(Fault((*path, own), f"must be a path, not {described(place)}", _example(own)))
    return NamedService(words, str(place or ""), settings, own_lines(rest, lines)), faults


def _example(key: str) -> str:
    return f"{key}: {_EXAMPLES.get(key, _COMMAND)}"


def _words(command: Any, path: tuple[str, ...], faults: list[Fault]) -> list[str]:
    """Return the words of a command; add what is wrong with it."""
    import shlex

    from yurt.model.context_check import Fault, described
    from yurt.node.service.programs import PORT, SOCKET

    words: list[str] = []
    problem, example = "", _example("command")
    if isinstance(command, str):
        try:
            words = shlex.split(command)
        except ValueError as error:
            problem = f"cannot be split into words: {str(error).lower()}"
    elif isinstance(command, list):
        words = [str(word) for word in command]
        if any(word in ({"port": None}, {"socket": None}) for word in command):
            problem = "has a mapping among its words: put quotes around {port} and {socket} in a list"
            example = 'command: [python, -m, http.server, "{port}"]'
        elif any(isinstance(word, dict | list) or word is None for word in command):
            problem = "must be a text or a list of words"
    elif command is not None:
        problem = f"must be a text or a list of words, not {described(command)}"
    if not problem and not words:
        problem = "is missing"
    port, socket = (any(each in word for word in words) for each in (PORT, SOCKET))
    if not problem and port and socket:
        problem = "contains both {port} and {socket}; use {socket} if the program can listen on a unix socket"
    if not problem and not port and not socket:
        problem = "must say where to listen: with {port}, or with {socket} for a unix socket"
    if problem:
        faults.append(Fault(path, problem, example))
    return words
