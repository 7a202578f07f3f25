"""Makes one call of `yurt.executor` after another in one process, on this machine: see yurt.backends.local.staying.

The file of calls contains it under the name yurt_staying. A process takes another call only if the last one has left no
thread, no process, no signal handler and no timer behind, and limits and streams are as they were; the rest that it may
have changed is put back: its working directory, variables, the search path, the umask, standard output and error.
Standard library only.
"""

import json
import os
import resource
import signal
import socket
import sys
import threading
from typing import Any, Callable, Dict, List
from urllib.parse import quote

MORE_FILES = 64
"""How many files a call may leave open: modules keep some, such as devices and their own libraries."""


def stay(channel: int, run: Callable[[int, str], int], searched: List[str]) -> int:
    """Make calls as the runner at the other end of a socket asks for them. Returns the exit code of the process.

    `searched` has the search path for modules after the first call.
    """
    runner = socket.socket(fileno=channel)
    runner.set_inheritable(False)
    lines = runner.makefile("rb")
    before = State(searched)
    number, target = int(os.environ["YURT_TASK_INDEX"]), os.path.join(os.environ["YURT_RUN_DIR"], "result")
    runner.sendall(b"starts\n")
    if not lines.readline():
        return 0
    while True:
        code = run(number, target)
        if code not in (0, 1) or not before.is_clean():
            return code
        _flush()
        try:
            runner.sendall(b"ended %d\n" % code)
            line = lines.readline()
        except OSError:  # the call closed it
            return code
        if not line:
            return 0
        call = json.loads(line.decode())
        number, target = call["number"], os.path.join(call["folder"], "result")
        before.restore(call)
        runner.sendall(b"begins\n")


class State:
    """What a process had before its first call."""

    def __init__(self, searched: List[str]) -> None:
        self._variables = dict(os.environ)
        self._streams = sys.stdin, sys.stdout, sys.stderr
        self._mask = os.umask(0o077)
        os.umask(self._mask)
        self._threads = threading.active_count()
        self._settings = _settings()
        self._files = _open_files()
        self._searched = searched

    def is_clean(self) -> bool:
        """Whether the call left nothing behind that the next one would notice, and that cannot be put back."""
        try:
            if threading.active_count() > self._threads or _settings() != self._settings:
                return False
        except (OSError, ValueError):
            return False
        if any(each is not None and each.closed for each in self._streams):
            return False
        if _open_files() > self._files + MORE_FILES:
            return False
        try:
            os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return True
        return False

    def restore(self, call: Dict[str, Any]) -> None:
        """Put the process into the state for a call: that of the first, with its own folder, variables and logs."""
        wanted = variables(self._variables, call)
        for name in [each for each in os.environ if each not in wanted]:
            del os.environ[name]
        for name, value in wanted.items():
            if os.environ.get(name) != value:
                os.environ[name] = value
        sys.stdin, sys.stdout, sys.stderr = self._streams
        for number, name in ((1, "out.log"), (2, "err.log")):
            file = os.open(os.path.join(call["folder"], name), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            os.dup2(file, number)
            os.close(file)
        for name, module in list(sys.modules.items()):
            if name.partition(".")[0] == "yurt" and hasattr(module, "forget_run"):
                module.forget_run()
        os.umask(self._mask)
        os.chdir(call["cwd"])
        sys.path[:] = self._searched


def variables(first: Dict[str, str], call: Dict[str, Any]) -> Dict[str, str]:
    """Return the variables of a call, from those of the first call: paths of its folder are replaced."""
    was, now = call["was"], call["folder"]
    found = {name: value for name, value in first.items() if name not in call["unset"]}
    for name, value in first.items():
        if was in value or quote(was) in value:
            found[name] = _replaced(_replaced(value, was, now), quote(was), quote(now))
    found.update(call["set"], YURT_RUN_ID=call["run"], YURT_TASK_INDEX=str(call["number"]))
    return found


def _replaced(value: str, was: str, now: str) -> str:
    """Replace a folder in a value, but not one whose name only begins like it."""
    parts = value.split(was)
    found = parts[0]
    for part in parts[1:]:
        found += (now if not part or part[0] in "/:" else was) + part
    return found


def _settings() -> List[Any]:
    """Return settings of a process that nobody puts back: handlers, timers, limits, priority, cores, standard input."""
    found: List[Any] = [signal.getsignal(each) for each in sorted(signal.Signals)]
    found += [signal.getitimer(each) for each in (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF)]
    found += [resource.getrlimit(value) for name, value in sorted(vars(resource).items()) if name.startswith("RLIMIT_")]
    found += [signal.pthread_sigmask(signal.SIG_BLOCK, []), os.getpriority(os.PRIO_PROCESS, 0)]
    found += [os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else None, os.fstat(0)[:3]]
    return found


def _open_files() -> int:
    try:
        return len(os.listdir("/proc/self/fd"))
    except OSError:
        return 0


def _flush() -> None:
    """Write what Python and C libraries have buffered, so that it is in the log of this call."""
    for stream in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__):
        try:
            stream.flush()  # type: ignore[union-attr]
        except (AttributeError, OSError, ValueError):
            pass
    try:
        import ctypes

        ctypes.CDLL(None).fflush(None)
    except (ImportError, OSError, AttributeError):
        pass
