"""serve NAME and serve -- PROGRAM: what to run."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from yurt.config import project
from yurt.config.services import PLACES
from yurt.errors import NotFoundError, UserError
from yurt.services import programs
from yurt.services.programs import Wanted

EXAMPLE = "for example: `yurt serve -- python -m http.server {port}`"


def wanted(words: Sequence[str], *, open_port: bool) -> tuple[Wanted, str]:
    """Return the service that words mean, and its name if it is one of the project's: NAME, or `--` and a program.

    UserError, NotFoundError.
    """
    if words[:1] == ["--"] and len(words) > 1:
        return Wanted(program=programs.COMMAND, words=words[1:], open_port=open_port), ""
    if not words or words == ["--"]:
        raise UserError("no program is given", code="usage", hint=EXAMPLE)
    name, *rest = words
    found = project.find()
    known = dict(found.services) if found is not None else {}
    if name not in known or name in PLACES:
        raise _absent(words, [each for each in known if each not in PLACES], found)
    if rest:
        raise UserError(
            f"service '{name}' takes no arguments, but '{shlex.join(rest)}' follows its name",
            code="usage",
            hint=f"its command is in {found.file.name if found else 'yurt.yaml'}",
        )
    return Wanted(program=programs.COMMAND, words=known[name].words, open_port=open_port), name


def place_of(program: str) -> str:
    """Return the files of the site that the project's entry of this program says it opens; else an empty text."""
    found = project.find()
    entry = found.services.get(program) if found is not None else None
    return entry.place if entry is not None else ""


def names() -> list[str]:
    """Return the names of the project's services that have a command."""
    found = project.find()
    return [] if found is None else [name for name in found.services if name not in PLACES]


def _absent(words: Sequence[str], known: Sequence[str], found: project.Project | None) -> UserError | NotFoundError:
    """Return the error for a name that is none of the project's."""
    from yurt.model.context_check import nearest

    name = words[0]
    if name in PLACES:
        return UserError(f"service '{name}' has a command of its own", code="usage", hint=f"use `yurt serve {name}`")
    where = f"in {found.file.name}" if found is not None else "because there is no yurt.yaml"
    text = f"service '{name}' not found {where}"
    near = nearest(name, [*known, *PLACES])
    if len(words) > 1:
        hint = f"to run a program, put `--` before it: `yurt serve -- {shlex.join(words)}`"
    elif near:
        hint = f"did you mean `yurt serve {near}`?"
    else:
        hint = EXAMPLE
    return NotFoundError(f"{text}; its services: {', '.join(known)}" if known else text, code="not-found", hint=hint)
