"""Starts a program of this machine, on Linux without subprocess: it takes longer to import than a transfer to start."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from typing import IO, Protocol

PIPE, TOO_LARGE = 13, 25
"""Signals of Linux that Python ignores and that the program must not ignore."""


class Child(Protocol):
    """A program that was started: subprocess.Popen, or what replaces it."""

    @property
    def pid(self) -> int: ...
    @property
    def returncode(self) -> int | None: ...
    @property
    def stdout(self) -> IO[bytes] | None: ...
    def wait(self) -> int: ...


class Started:
    """A program that this process has started, and whose standard output it reads through a pipe."""

    def __init__(self, pid: int, stdout: int) -> None:
        self.pid, self.stdout = pid, os.fdopen(stdout, "rb", 0)
        self.returncode: int | None = None

    def wait(self) -> int:
        if self.returncode is None:
            self.returncode = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return self.returncode


def _spawn(argv: Sequence[str], environment: Mapping[str, str], stdin: int, stderr: int) -> Started:
    read, write = os.pipe()
    actions = [(os.POSIX_SPAWN_DUP2, each, at) for at, each in enumerate((stdin, write, stderr))]
    try:
        pid = os.posix_spawnp(
            argv[0], list(argv), environment, file_actions=actions, setsid=True, setsigdef=[PIPE, TOO_LARGE]
        )
    except BaseException:
        os.close(read)
        raise
    finally:
        os.close(write)
    return Started(pid, read)


def start(argv: Sequence[str], environment: Mapping[str, str], stdin: IO[bytes], stderr: IO[bytes], keep: int) -> Child:
    """Start a program in a new session, so that its children can be killed with it. `keep`: a descriptor it inherits.

    OSError if there is no such program.
    """
    given, errors = stdin.fileno(), stderr.fileno()
    if sys.platform == "linux" and min(given, errors) > 2:
        os.set_inheritable(keep, True)
        try:
            return _spawn(argv, environment, given, errors)
        except NotImplementedError:  # a C library that cannot start a program in a new session
            pass
        finally:
            os.set_inheritable(keep, False)
    import subprocess

    return subprocess.Popen(
        argv,
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=stderr,
        env=environment,
        pass_fds=[keep],
        start_new_session=True,
    )
