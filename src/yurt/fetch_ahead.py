"""Starts the rsync of a repeated `yurt fetch` while Python still imports the rest of yurt.

A fetch is saved with its command line. The same command line in the same folder starts the same rsync again, before
anything else is imported, if the connection is open. If yurt then starts exactly this rsync, it takes over the process;
otherwise it stops it. Saved are only fetches that name their run by its id and replace no files of a project, so an
early rsync writes nothing that this command line does not. Imports only modules that Python has loaded anyway.
"""

from __future__ import annotations

import marshal
import os
import sys
from collections.abc import Mapping, Sequence

from yurt import stop_on_signal
from yurt.queue_prefetch import data_file

PROJECT_MARKS = ("yurt.yaml", "pyproject.toml", ".git")
"""A folder above the current one is that of a project only if it has one of these."""

_SET_PIPE_SIZE = 1031
_PIPE, _TOO_LARGE, _TERM, _KILL = 13, 25, 15, 9
"""Numbers of Linux; the modules that name them are slow to import."""

_SIGN = 9
"""The descriptor of the status in these processes; dash knows only those with one digit."""

_FILES = (
    "__init__.py",
    "backends/job/own.sh",
    "backends/shell/measure.sh",
    "backends/shell/contents.sh",
    "hosts/rsync.py",
)
"""Files of yurt that a fetch depends on."""

_arguments: list[str] = []
"""The command line, if the next one like it should start its rsync early."""

_started: list[Started] = []
"""The early rsync, until it is taken."""

_words: dict[str, str] = {}
"""The random words of this process."""


class Started:
    """An rsync process: its command, and the descriptors of its output, its errors and its status.

    The status has a byte when the remote shell has ended, and ends with rsync.
    """

    def __init__(self, argv: list[str], variables: dict[str, str]) -> None:
        self.argv, self.variables = argv, variables
        self.output, output = os.pipe()
        self.status, status = os.pipe()
        self.errors = os.memfd_create("yurt")
        null = os.open(os.devnull, os.O_RDONLY)
        streams = (null, output, self.errors)
        actions = [(os.POSIX_SPAWN_DUP2, each, at) for at, each in enumerate(streams)]
        actions.append((os.POSIX_SPAWN_DUP2, status, _SIGN))
        environment = {**os.environ, "LC_ALL": "C", "YURT_SIGN": str(_SIGN), **variables}
        try:
            self.pid = os.posix_spawnp(
                argv[0], argv, environment, file_actions=actions, setsid=True, setsigdef=[_PIPE, _TOO_LARGE]
            )
        except BaseException:
            self.close()
            raise
        finally:
            for each in (null, output, status):
                os.close(each)

    def close(self) -> None:
        for each in (self.output, self.status, self.errors):
            os.close(each)


def begin(arguments: Sequence[str]) -> None:
    """Start the saved rsync if this is the same command line, in the same folder."""
    if sys.platform != "linux" or "--help" in arguments:
        return
    _arguments[:] = arguments
    try:
        with open(_file(), "rb") as file:
            place, basis, (path, target), words, argv, variables = marshal.load(file)
        if (
            place == _place(arguments)
            and basis == _basis()
            and os.path.exists(path)
            and not os.path.exists(f"{path}.silent")
            and not os.path.exists(f"{path}.noisy")
            and _is_ready(target, arguments)
        ):
            _words.update(words)
            _started.append(Started(argv, variables))
            stop_on_signal.add(drop)
            import atexit

            atexit.register(drop)
    except (OSError, ValueError, EOFError, TypeError, NotImplementedError):
        return


def _is_ready(target: str, arguments: Sequence[str]) -> bool:
    """Whether rsync may write to the target before yurt has looked at it. It makes the folder if that is missing."""
    exists = os.path.isdir(target)
    if not exists and (
        os.path.lexists(target) or _has("--only", arguments) or not os.path.isdir(os.path.dirname(target))
    ):
        return False
    return not _has("--to", arguments) or is_outside_projects(target)


def _has(option: str, arguments: Sequence[str]) -> bool:
    return any(each.startswith(option) for each in arguments)


def is_outside_projects(folder: str) -> bool:
    """Whether a folder is certainly not in the project of the current folder."""
    path, above = os.path.realpath(folder), os.path.realpath(".")
    first = True
    while True:
        inside = path == above or path.startswith(above.rstrip("/") + "/")
        if inside and (first or any(os.path.exists(f"{above}/{name}") for name in PROJECT_MARKS)):
            return False
        if above == "/":
            return True
        above, first = os.path.dirname(above), False


def word(kind: str) -> str:
    """Return a random word of this process, by kind; that of the process that saved it, if its rsync was started."""
    return _words.setdefault(kind, os.urandom(8).hex())


def take(argv: Sequence[str], variables: Mapping[str, str]) -> Started | None:
    """Return the early rsync if it is this one; otherwise stop it. The caller stops it and closes its descriptors."""
    if _started and _started[0].argv == [*argv] and _started[0].variables == variables:
        return _started.pop()
    drop()
    return None


def settled(source: str, target: str, seconds: float) -> str | None:
    """Return the errors of the early rsync if it copies this, and the site has done its part soon; None if not.

    If rsync then succeeds, all files were in place already: it waits a moment for the end of its remote shell.
    """
    if not _started or _started[0].argv[-2:] != [source, target]:
        return None
    import select

    return _errors() if select.select([_started[0].status], [], [], seconds)[0] else None


def _errors() -> str:
    errors = _started[0].errors
    return os.pread(errors, os.fstat(errors).st_size, 0).decode(errors="replace")


def finished(seconds: float) -> str | None:
    """Return the output of the early rsync if it succeeds soon; None if not. It stays for `take`, unless `done` is
    called."""
    import select

    early = _started[0]
    while True:
        if not select.select([early.status], [], [], seconds)[0]:
            return None
        if not os.read(early.status, 100):
            break
    ended = os.waitid(os.P_PID, early.pid, os.WEXITED | os.WNOWAIT)
    if ended is None or ended.si_status or ended.si_code != os.CLD_EXITED:
        return None
    replay, output = os.memfd_create("yurt"), b""
    while part := os.read(early.output, 1 << 16):
        output += part
    os.write(replay, output)
    os.lseek(replay, 0, os.SEEK_SET)
    os.close(early.output)
    early.output = replay
    return output.decode(errors="replace")


def done() -> None:
    """Close the early rsync: its result was used."""
    early = _started.pop()
    os.waitpid(early.pid, 0)
    early.close()


def is_started() -> bool:
    """Whether an rsync was started early."""
    return bool(_started)


def contents_mark() -> str:
    """Return what the site prints before and after the contents of a run."""
    return f"yurt-contents-{word('site')}"


def drop() -> None:
    """Stop the early rsync, which keeps partial files, and wait for its end."""
    while _started:
        import select

        started = _started.pop()
        os.killpg(started.pid, _TERM)  # exists, since nobody has waited for it
        select.select([started.status], [], [], 5.0)  # its children have the status, too
        os.killpg(started.pid, _KILL)
        os.waitpid(started.pid, 0)
        started.close()


def save(run: str, argv: Sequence[str], variables: Mapping[str, str], *, socket: str, target: str) -> None:
    """Save a fetch of a run to a folder for the next process with this command line. It makes no backups."""
    file = _file()
    if run not in _arguments or not os.path.isdir(os.path.dirname(file)):
        return
    temporary = f"{file}.{os.getpid()}"
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as stream:
            saved = (_place(_arguments), _basis(), (socket, target), _words, list(argv), dict(variables))
            marshal.dump(saved, stream)
        os.replace(temporary, file)
    except OSError:
        return


def _basis() -> list[tuple[int, int, int]]:
    """Return what identifies the content of the files that a fetch is made from; zeros for a file that is elsewhere."""
    home = os.environ.get("YURT_CONFIG_HOME")
    if not home:
        home = os.path.join(os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config"), "yurt")
    package = os.path.dirname(__file__)
    return [_identity(each) for each in (f"{home}/contexts.yaml", *(f"{package}/{name}" for name in _FILES))]


def _identity(path: str) -> tuple[int, int, int]:
    try:
        found = os.stat(path)
    except OSError:
        return 0, 0, 0
    return found.st_ino, found.st_size, found.st_mtime_ns


def _place(arguments: Sequence[str]) -> tuple[list[str], str, list[tuple[str, str]]]:
    """Return what else a fetch depends on: the command line, the folder, the environment."""
    names = ("HOME", "PATH", "YURT_CONFIG_HOME", "YURT_RUNTIME_DIR", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR")
    seen = [("stderr", str(os.isatty(2)))]  # whether progress is shown
    return list(arguments), os.getcwd(), [*seen, *((name, os.environ.get(name, "")) for name in names)]


def _file() -> str:
    return data_file(f"fetch-ahead-{sys.version_info.minor}")
