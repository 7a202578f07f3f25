"""Ends executors when the user presses Ctrl-C and when the interpreter exits."""

from __future__ import annotations

import concurrent.futures.thread  # noqa: F401  (its hook must run after this module's: polling uses its threads)
import os
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING
from weakref import WeakSet

if TYPE_CHECKING:
    from yurt.api.sender import Sender

_lock = threading.RLock()
_senders: WeakSet[Sender] = WeakSet()
_exiting = threading.Event()


@contextmanager
def accepting(sender: Sender) -> Iterator[None]:
    """Guard the start of a sender's work. RuntimeError: the interpreter is exiting.

    The interpreter waits at its exit for all senders that were accepted.
    """
    with _lock:
        if _exiting.is_set():
            raise RuntimeError("cannot schedule new futures after interpreter shutdown")
        _senders.add(sender)
        yield


def leave(senders: Iterable[Sender]) -> None:
    """Stop waiting for calls after Ctrl-C, and print what happens to them."""
    lines = [line for sender in senders for line in sender.leave()]
    print("".join(f"{line}\n" for line in lines), end="", file=sys.stderr, flush=True)


def _at_exit() -> None:
    """Wait for all open calls, as the standard library does, unless Ctrl-C ends or has ended the program."""
    with _lock:
        _exiting.set()
        senders = [each for each in _senders if each.own()]
    if _interrupted():
        leave(senders)
        return
    try:
        for each in senders:
            each.finish()
        for each in senders:
            each.join()
    except KeyboardInterrupt:
        leave(senders)
        _exit_as_interrupted()


def _interrupted() -> bool:
    """Whether Ctrl-C ended the program. In an interactive session it ended only some earlier command."""
    return getattr(sys, "last_type", None) is KeyboardInterrupt and not hasattr(sys, "ps1")


def _exit_as_interrupted() -> None:
    """Have the interpreter exit as after an uncaught KeyboardInterrupt, so that a shell script stops too.

    CPython does so if the last code that it ran as a program raised one. Others exit with the program's own code.
    """
    with suppress(KeyboardInterrupt):
        exec("raise KeyboardInterrupt")


os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release)
try:
    threading._register_atexit(_at_exit)  # type: ignore[attr-defined]
except RuntimeError:  # the first executor is created during the exit
    _exiting.set()
