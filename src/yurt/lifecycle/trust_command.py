"""`yurt trust`: what the user agrees to for a project, and the questions about it."""

from __future__ import annotations

import click

from yurt.cli import render
from yurt.cli.app import verb
from yurt.errors import UnconfirmedError, UserError


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
@click.argument("names", nargs=-1, metavar="[ADDRESS|PATH]...")
@click.option("--build", "builds", metavar="NAME", multiple=True, help="Let the build code of a package run here.")
@click.option(
    "--write", "writes", metavar="PATH", multiple=True, help="Let links of the project lead downloads to PATH."
)
@click.option("--forget", is_flag=True, help="Forget what you agreed to for this project.")
def trust(names: tuple[str, ...], builds: tuple[str, ...], writes: tuple[str, ...], forget: bool) -> int:
    """Agree to what a project wants of this machine.

    The project may take packages from an ADDRESS, and upload the file or folder PATH from outside the project. With
    --write, a link of the project may lead there what you download. Other commands ask on a terminal when they need it,
    and refuse it elsewhere. Without arguments, shows what you have agreed to for the project in the working directory.
    """
    from yurt.lifecycle import trust as verbs

    if forget:
        if names or builds or writes:
            raise UserError("--forget forgets everything", code="usage", hint="use `yurt trust --forget`")
        found = verbs.forget()
    else:
        found = verbs.add(names, builds=builds, writes=writes) if names or builds or writes else verbs.show()
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
    from yurt.lifecycle import trust as verbs

    click.echo(f"yurt: {render.escaped(error.message)}", err=True)
    try:
        if not click.confirm(QUESTIONS[error.kind], default=False, err=True):
            return False
    except click.Abort:
        return False
    verbs.agree(error)
    return True
