"""Changes a contexts file atomically, under a lock, and without side effects on other contexts."""

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
"""A function from (text, parsed text) to (new text, expected parse of the new text)."""


def change(file: Path, edit: Edit) -> None:
    """Read, edit and write the file under its lock; a symbolic link stays a link.

    UserError if the new text does not parse to the expected contexts; the file is then unchanged.
    """
    target = file.resolve()
    try:
        with locked(target):
            text = text_of(target, trusted=True)
            before = parse(text, file)  # never rewrite a file that yurt cannot parse
            made, expected = _edited(file, edit, text, before)
            if made != text:
                if not parses_to(made, expected):
                    raise _needs_manual_edit(file)
                ending = "\r\n" if b"\r\n" in (target.read_bytes() if target.exists() else b"") else "\n"
                paths.write_private(target, made.replace("\n", ending).encode())
    except OSError as error:
        raise UserError(f"cannot write {file}: {error.strerror}", code="config-unwritable") from None


def parses_to(text: str, expected: ContextsFile) -> bool:
    """Whether a text parses to exactly these contexts; an invalid one stays invalid."""
    try:
        found = parse(text, "")
    except UserError:
        return False
    return (found.contexts, found.current_context, found.invalid) == (
        expected.contexts,
        expected.current_context,
        expected.invalid,
    )


def _edited(file: Path, edit: Edit, text: str, before: ContextsFile) -> tuple[str, ContextsFile]:
    try:
        return edit(text, before)
    except ValueError:
        raise _needs_manual_edit(file) from None


def _needs_manual_edit(file: Path) -> UserError:
    return UserError(
        f"cannot edit {file} automatically: the change would affect other parts, such as contexts that share a YAML "
        "anchor",
        code="config-unwritable",
        hint=faults.edit_hint(file),
    )
