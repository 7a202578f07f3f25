"""Decides which declaration of a project's packages a run uses."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from yurt.backends.kinds import kind_of
from yurt.config import trust
from yurt.contexts.project import Project
from yurt.errors import UnconfirmedError, UserError
from yurt.model.context import Context

if TYPE_CHECKING:
    from yurt.envs.declared import Declared

NONE, AUTO = "none", "auto"

PROGRAMS = ("torchrun", "accelerate", "deepspeed", "pytest")
"""Commands that run Python code of the project, besides python, python3 and python3.11."""


def is_python(argv: Sequence[str]) -> bool:
    """Whether a command runs Python code with the first Python that is found."""
    if not argv:
        return False
    is_interpreter = argv[0].startswith("python") and not argv[0][len("python") :].strip("0123456789.")
    return is_interpreter or argv[0] in PROGRAMS or argv[0].endswith(".py")


def chosen(
    wanted: Context, argv: Sequence[str], project: Project, *, own_setup: bool, flag: str = ""
) -> tuple[Declared | None, list[str]]:
    """Return what declares the environment that yurt builds for a run, and what to tell the user about the choice.

    `own_setup`: the user's script sets up its environment itself. `flag`: the option that names the declaration.
    """
    if kind_of(wanted.type).here:
        return None, [f"{flag} has no effect on this machine, which uses the active Python"] if flag else []
    if wanted.env == NONE:
        return None, []
    file = wanted.requirements_file or (wanted.env if wanted.env != AUTO else "")
    own = wanted.venv or wanted.conda or wanted.container or own_setup
    if not file and (own or not is_python(argv)):
        return None, []
    from yurt.envs.declared import declarations, named

    if file:
        _check_alone(wanted, "requirements_file" if wanted.requirements_file else "env")
    file, bracket, rest = (file or "").partition("[")
    python, parts = wanted.env_python or "", _parts(bracket, rest)
    if file:
        found = named(project.folder, _below(file, project), python=python, parts=parts)
        return _agreed(found, project), _left_out(found)
    folder = next((each for each in _folders(argv, project) if declarations(each)), None)
    if folder is None:
        if bracket:
            raise UserError("no file of this project declares packages", code="usage", hint="name one: `--env FILE`")
        return None, []
    several = declarations(folder)
    title = os.path.relpath(folder / several[0].title, project.folder)
    first = named(project.folder, title, python=python, parts=parts)
    # A uv.lock belongs to the pyproject.toml beside it.
    others = " and ".join(each.title for each in several[1:] if first.kind != "uv" or each.kind != "pyproject")
    notes = _left_out(first)
    if others:
        notes.append(f"using {first.title} for the environment, not {others}; choose another one with `--env FILE`")
    return _agreed(first, project), notes


def _agreed(declared: Declared, project: Project) -> Declared:
    """Return a declaration. UnconfirmedError if it names addresses that are neither the user's nor confirmed, or if it
    is outside the project, or takes packages from there, and the user has not agreed to that."""
    from yurt.contexts import outside_files
    from yurt.envs.addresses import foreign, on_this_machine

    declared.check()
    folder = Path(declared.folder or project.folder)
    outside_files.check(project, [folder / each for each in declared.files], declared.title)
    outside_files.check(project, on_this_machine(declared), declared.title)
    known = trust.of(project.label, str(project.folder)).addresses
    new = [each for each in foreign(declared) if each not in known]
    if new:
        raise UnconfirmedError(
            f"{declared.title} takes packages from {' and '.join(new)}, which your settings for uv and pip do not name",
            kind="address",
            names=new,
        )
    return declared


def _parts(bracket: str, text: str) -> list[str]:
    """Return the extras and groups in a text such as `fast, dev]`; it follows the bracket."""
    if bracket and not (text.endswith("]") and text[:-1].strip(" ,")):
        raise UserError(
            f"`[{text}` after the declaration is not a list of extras and groups",
            code="usage",
            hint="for example: `--env 'pyproject.toml[train]'`",
        )
    return [each.strip() for each in text[:-1].split(",") if each.strip()]


def _folders(argv: Sequence[str], project: Project) -> Iterator[Path]:
    """Yield the folders that may declare the packages of a run, the nearest one first.

    Those are the working directory and the folders around it, up to the project's; then those around the script.
    """
    here = project.folder / project.subfolder
    script = next((here / word for word in argv if word.endswith(".py") and (here / word).is_file()), here)
    for start in (here, Path(os.path.normpath(script)).parent):
        for each in (start, *start.parents):
            if not each.is_relative_to(project.folder):
                break
            yield each


def sources(declared: Declared, project: Project) -> list[str]:
    """Return the folders of the project with packages that are not installed, but would be: `.`, or `src` in it."""
    base = os.path.relpath(Path(declared.folder or project.folder, declared.title).parent, project.folder)
    found: dict[str, None] = {}
    for line in declared.left_out:
        local = re.sub(r"^-e\s*|^--editable[ =]|\[[^]]*\]$", "", line.strip()).strip()
        folder = os.path.normpath(f"{base}/{local}")
        if folder.startswith("..") or ":" in folder or not (project.folder / folder).is_dir():
            continue
        found[f"{folder}/src" if (project.folder / folder / "src").is_dir() else folder] = None
    return list(found)


def _left_out(declared: Declared) -> list[str]:
    """Return a note about local packages, which yurt does not install; the project itself is in the run anyway."""
    lines = [line for line in declared.left_out if line.strip().removeprefix("-e").strip() not in (".", "./")]
    if not lines:
        return []
    return [f"{declared.title}: local packages are not installed on the cluster: {', '.join(lines)}"]


def _below(file: str, project: Project) -> str:
    """Return a file relative to the project folder; the user names it relative to the working directory."""
    if Path(file).is_absolute():
        return os.path.relpath(file, project.folder)
    here = os.path.normpath(Path(project.subfolder) / file)
    return here if (project.folder / here).exists() or not (project.folder / file).exists() else file


def _check_alone(wanted: Context, key: str) -> None:
    other = next((each for each in ("venv", "conda", "container") if getattr(wanted, each)), None)
    if other is not None:
        flag = "--requirements" if key == "requirements_file" else "--env"
        raise UserError(
            f"{flag} and {other} both set the environment of the run",
            code="usage",
            hint=f"keep one of them; `--env none` uses {other} alone",
        )
