"""Exceptions of futures whose call has no result."""

from __future__ import annotations

from concurrent.futures import BrokenExecutor

from yurt.errors import RefusedError


class CallError(RefusedError):
    """A function call has no result, for a reason other than an exception of the function.

    `task` is the id of the call's run; it is empty if the call was not submitted. `code`, `message` and `hint` are
    those of every yurt error.
    """

    task: str = ""


class BrokenExecutorError(CallError, BrokenExecutor):
    """The executor runs no more calls, because its initializer or yurt failed.

    Also a `concurrent.futures.BrokenExecutor`.
    """


class RemoteTraceback(Exception):
    """The remote traceback of a function's exception; set as the `__cause__` of that exception."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text

    def __str__(self) -> str:
        return f'\n"""\n{self.text}"""'


class RemoteError(Exception):
    """Replaces a function's exception that cannot be unpickled; its text is the original type and message."""
