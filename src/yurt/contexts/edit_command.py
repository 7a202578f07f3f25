"""`yurt context edit`: edit a context in the user's editor."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from yurt.cli import app, render
from yurt.cli.app import context_names, verb
from yurt.errors import UserError

if TYPE_CHECKING:
    from yurt.contexts.context import Edited
    from yurt.model.result import Result


@verb(examples=["yurt context edit", "yurt context edit big"])
@click.argument("name", metavar="[NAME]", required=False, default="", shell_complete=context_names)
def edit(name: str) -> None:
    """Edit a context in your editor.

    Opens context NAME, or the current context, in $VISUAL, $EDITOR or vi.
    """
    import tempfile

    from yurt.config.contexts import current_name
    from yurt.contexts import context as verbs

    name = name or current_name(app.current().context)
    was = verbs.text(name)
    file = Path(tempfile.mkdtemp(prefix="yurt-")) / f"{name}.yaml"  # mkdtemp creates a private folder
    file.touch(mode=0o600)
    file.write_text(was)
    try:
        done = _edited(name, file, was)
    except UserError as error:
        if file.exists() and file.read_bytes() != was.encode():
            error.hint = f"your text is saved in `{file}`; run `yurt context edit {name}` again"
            raise
        _clean(file)
        raise
    _clean(file)
    render.result(done, lambda: print(f"context '{name}' {'changed' if done.data.changed else 'unchanged'}"))


def _edited(name: str, file: Path, was: str) -> Result[Edited]:
    """Open the editor until the text is valid or the user gives up."""
    from yurt.contexts import context as verbs

    while True:
        open_editor(file)
        try:
            return verbs.edit(name, _read(file), was=was)
        except UserError as error:
            if error.code != "config-invalid" or not _again(error):
                raise


def _again(error: UserError) -> bool:
    if not (sys.stdin.isatty() and sys.stderr.isatty()) or app.current().json:
        return False
    render.error(error, as_json=False)
    return click.confirm("edit again?", default=True, err=True)


def open_editor(file: Path) -> None:
    """Open a file in the user's editor and wait for it. UserError if that fails."""
    import shlex
    import subprocess

    from yurt.config.faults import editor

    try:
        code = subprocess.call([*shlex.split(editor()), str(file)])
        problem = f"exited with code {code}" if code else ""
    except (OSError, ValueError) as error:
        problem = f"cannot be started: {error}"
    if problem:
        raise UserError(
            f"the editor '{editor()}' {problem}",
            code="editor-failed",
            hint="choose another editor, for example: `export EDITOR=nano`",
        )


def _read(file: Path) -> str:
    try:
        return file.read_text()
    except (OSError, UnicodeDecodeError) as error:
        removed = isinstance(error, OSError)
        raise UserError(
            "the editor removed the file" if removed else "the edited file is not valid UTF-8",
            code="editor-failed",
            hint="nothing was changed; run `yurt context edit` again",
        ) from None


def _clean(file: Path) -> None:
    import shutil

    shutil.rmtree(file.parent, ignore_errors=True)
