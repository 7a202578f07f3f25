"""What a future raises if its call came to no value."""

from __future__ import annotations

from yurt.errors import RefusedError


class CallError(RefusedError):
    """A call did not come to a value, and not because its function raised an error. `task` is its run."""

    task: str = ""


class RemoteTraceback(Exception):
    """The traceback of an error where it was raised; the cause of the error here."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text

    def __str__(self) -> str:
        return f'\n"""\n{self.text}"""'


class RemoteError(Exception):
    """Stands for an error that a function raised and that cannot be made again here: its name and its words."""
