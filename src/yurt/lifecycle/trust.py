"""trust: what the user agrees to for the project around the working directory."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import click

from yurt.cli import render
from yurt.cli.ask import confirm
from yurt.cli.declare import argument, option, verb
from yurt.config import trust as recorded
from yurt.config.trust import Trusted
from yurt.contexts.project import Project
from yurt.envs import addresses
from yurt.envs.lock import normal
from yurt.errors import UnconfirmedError, UserError
from yurt.model.result import Result


def show() -> Result[Trusted]:
    """Return what this project may do."""
    project = Project()
    return _result(recorded.of(project.label, str(project.folder)))


def add(names: Sequence[str] = (), *, builds: Sequence[str] = (), writes: Sequence[str] = ()) -> Result[Trusted]:
    """Agree to addresses, to the upload of files or folders, to builds of packages on this machine, and to folders
    outside the project that its links may lead to."""
    project = Project()
    label, folder = project.label, str(project.folder)
    known = recorded.add(label, folder, "address", [addresses.plain(each) for each in names if "://" in each])
    files = [_real(each) for each in names if "://" not in each]
    known = recorded.add(label, folder, "file", files) if files else known
    known = recorded.add(label, folder, "write", map(_real, writes)) if writes else known
    known = recorded.add(label, folder, "build", map(normal, builds)) if builds else known
    return _result(known)


def _real(path: str) -> str:
    return os.path.realpath(Path(path).expanduser())


def agree(error: UnconfirmedError) -> None:
    """Agree to what an error is about."""
    project = Project()
    recorded.add(project.label, str(project.folder), error.kind, error.names)


def forget_all() -> Result[Trusted]:
    """Forget all of it."""
    project = Project()
    recorded.forget(project.label)
    return _result(Trusted(str(project.folder)))


def _result(known: Trusted) -> Result[Trusted]:
    return Result(kind="trusted", data=known)


@verb(
    examples=[
        "yurt trust",
        "yurt trust https://packages.example.org/simple",
        "yurt trust ../data/vocabulary.txt --build antlr4-python3-runtime",
        "yurt trust --write /scratch/ada/results",
        "yurt trust --forget",
    ],
    context_help="",
)
@argument("names", nargs=-1, metavar="[ADDRESS|PATH]...")
@option("--build", "builds", metavar="NAME", multiple=True, help="Let the build code of a package run here.")
@option("--write", "writes", metavar="PATH", multiple=True, help="Let links of the project lead downloads to PATH.")
@option("--forget", is_flag=True, help="Forget what you agreed to for this project.")
def trust_command(names: tuple[str, ...], builds: tuple[str, ...], writes: tuple[str, ...], forget: bool) -> int:
    """Agree to what a project wants of this machine.

    The project may take packages from an ADDRESS, and upload the file or folder PATH from outside the project. With
    --write, a link of the project may lead there what you download. Other commands ask on a terminal when they need it,
    and refuse it elsewhere. Without arguments, shows what you have agreed to for the project in the working directory.
    """

    if forget:
        if names or builds or writes:
            raise UserError("--forget forgets everything", code="usage", hint="use `yurt trust --forget`")
        found = forget_all()
    else:
        found = add(names, builds=builds, writes=writes) if names or builds or writes else show()
    data = found.data
    lines = [*data.addresses, *data.files, *(f"--write {each}" for each in data.writes)]
    lines += [f"--build {each}" for each in data.builds]
    return render.result(found, lambda: print("\n".join(map(render.plain, lines)) or "nothing"))


QUESTIONS = {
    "address": "let this project take packages from there?",
    "build": "run its code on this machine?",
    "file": "let this project upload it?",
    "write": "write there?",
}


def agrees(error: UnconfirmedError) -> bool:
    """Ask the user on the terminal, and record the answer if it is yes."""

    click.echo(f"yurt: {render.escaped(error.message)}")
    try:
        if not confirm(QUESTIONS[error.kind], default=False):
            return False
    except click.Abort:
        return False
    agree(error)
    return True
