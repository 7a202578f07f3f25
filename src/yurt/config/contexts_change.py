"""One change to a contexts file: alone, all at once, and with no effect on anything it is not about."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from yurt.config import faults, paths
from yurt.config.contexts_text import parse
from yurt.config.lock import locked
from yurt.config.text import text_of
from yurt.errors import UserError
from yurt.model.context import ContextsFile

Edit = Callable[[str, ContextsFile], tuple[str, ContextsFile]]
"""Makes of a text, and what it says, another text and what that one must say."""


def change(file: Path, edit: Edit) -> None:
    """Read, change and write the file while nobody else does; a link to the file stays a link.

    UserError where the new text would not say exactly what it must; then nothing has changed.
    """
    target = file.resolve()
    try:
        with locked(target):
            text = text_of(target)
            before = parse(text, file)  # a file that yurt cannot read is never rewritten
            made, wanted = _edited(file, edit, text, before)
            if made != text:
                if not says(made, wanted):
                    raise _by_hand(file)
                ending = "\r\n" if b"\r\n" in (target.read_bytes() if target.exists() else b"") else "\n"
                paths.write_private(target, made.replace("\n", ending).encode())
    except OSError as error:
        raise UserError(f"{file} cannot be written: {error.strerror}", code="config-unwritable") from None


def says(text: str, wanted: ContextsFile) -> bool:
    """Whether a text is right and says just that."""
    try:
        return parse(text, "") == wanted
    except UserError:
        return False


def _edited(file: Path, edit: Edit, text: str, before: ContextsFile) -> tuple[str, ContextsFile]:
    try:
        return edit(text, before)
    except ValueError:
        raise _by_hand(file) from None


def _by_hand(file: Path) -> UserError:
    return UserError(
        f"{file} cannot be changed by yurt without harm to the rest of it, such as contexts that share anchors; "
        "change it by hand",
        code="config-unwritable",
        hint=f"{faults.editor()} {paths.as_typed(file)}",
    )
