"""The command `yurt`: the only place that catches every error and sets the exit code."""

from __future__ import annotations

import atexit
import contextlib
import errno
import os
import sys
import threading
from collections.abc import Sequence
from typing import NoReturn

from yurt.errors import RefusedError, UnconfirmedError, YurtError, here_is_full

MOST_QUESTIONS = 50


def main(argv: Sequence[str] | None = None) -> None:
    """Run one yurt command and exit with its exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    leave(run(arguments))


def leave(code: int) -> NoReturn:
    """Exit, without the time that Python takes to free every object: a tenth of a short verb."""
    for thread in threading.enumerate():
        if not thread.daemon and thread is not threading.main_thread():
            thread.join()
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


def run(arguments: list[str], *, agreed: int = 0) -> int:
    """Run one yurt command and return its exit code. Errors are printed, never raised.

    If a project wants something that the user has not agreed to, asks on a terminal, and runs the command again after a
    yes. `agreed` counts these, so that an agreement that cannot be recorded does not repeat the question forever.
    """
    _open_closed_streams()
    try:
        code = _call(arguments)
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except BrokenPipeError:  # the reader of stdout exited, as `head` does
        _discard_stdout()
        return 141
    except UnconfirmedError as error:
        if agreed < MOST_QUESTIONS and "--json" not in arguments and _agrees(error):
            return run(arguments, agreed=agreed + 1)
        return _fail(error, arguments)
    except Exception as error:
        return _fail(error, arguments)
    except KeyboardInterrupt:
        print(file=sys.stderr)
        return 130


def _agrees(error: UnconfirmedError) -> bool:
    """Ask the user, on a terminal only."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    from yurt.lifecycle import trust

    return trust.agrees(error)


def _open_closed_streams() -> None:
    """Open /dev/null for standard streams that the caller closed. Files that yurt opens would take their numbers."""
    if sys.stdin is None:
        sys.stdin = os.fdopen(os.open(os.devnull, os.O_RDONLY))
    if sys.stdout is None:
        sys.stdout = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")
    if sys.stderr is None:
        sys.stderr = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")


def _call(arguments: list[str]) -> object:
    """Return what the verb returns."""
    if "_YURT_COMPLETE" not in os.environ:
        from yurt.cli import quick

        found = quick.parse(arguments)
        if found is not None:
            return found.invoke()
    return _call_by_click(arguments)


def _call_by_click(arguments: list[str]) -> object:
    """Return what the verb returns. Does not use click's `main`, which sets its own exit codes for some errors."""
    import click

    from yurt.cli.root import root

    if "_YURT_COMPLETE" in os.environ:
        root.main(arguments, prog_name="yurt")
    try:
        with root.make_context("yurt", [*arguments]) as context:  # click empties the list
            return root.invoke(context)
    except click.exceptions.Exit as done:  # --help and --version
        return done.exit_code


def _discard_stdout() -> None:
    """Redirect stdout to /dev/null. Otherwise Python fails at exit when it flushes the buffer."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _fail(error: Exception, arguments: list[str]) -> int:
    from yurt.cli import render

    options = arguments[: arguments.index("--")] if "--" in arguments else arguments
    as_json = "--json" in options
    if "click" in sys.modules:
        from yurt.cli import usage_errors

        told = usage_errors.explained(error, as_json=as_json)
        if isinstance(told, int):
            return told
        error = told
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EIO, errno.EBADF) and not error.filename:
        _discard_stdout()
        error = RefusedError(f"cannot write the output: {error.strerror}", code="output-failed")
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT) and error.filename:
        error = here_is_full(error.filename, error.strerror or "", hint="free some space, then run the command again")
    if isinstance(error, OSError):
        from yurt.config import paths

        error = paths.unwritable(error) or error
    if not isinstance(error, YurtError):
        error = render.as_bug(error, arguments)
    with contextlib.suppress(OSError):  # the error cannot be printed either
        render.error(error, as_json=as_json, plain="--plain" in options or bool(os.environ.get("YURT_PLAIN")))
        sys.stdout.flush()
    return error.exit_code
