"""One ssh connection per context, shared by all yurt commands through OpenSSH multiplexing."""

from __future__ import annotations

import contextlib
import os
import shlex
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from yurt import private
from yurt.clocks import clocks
from yurt.errors import UnreachableError, YurtError
from yurt.model.digest import digest
from yurt.model.progress import patience
from yurt.transport import counts, mux_settings, sockets, ssh_errors
from yurt.transport.mux_settings import MuxSettings
from yurt.transport.queue_prefetch import GREETING, greets, is_binary

SESSIONS = 8
"""Maximum number of concurrent sessions on one master, over all yurt processes of a user."""

LIFETIME = "12h"

MASTER = ("-M", "-N", "-f", "-T", "-S")
"""The words of a master's command line before its socket."""

MARGIN = 5.0
"""How much longer to wait for another yurt process that is opening the connection, in seconds."""

LOCAL = 10.0
"""Seconds that a process of this machine may take to answer, such as a master."""

PROMPTS = "prompts"
"""The content of the lock while ssh may prompt the user. After a failed attempt, it is what ssh printed."""

_gave_up: dict[str, float] = {}
"""When this process waited in vain, by the file that records it."""


class Master:
    """The master connection to one destination. Only `ensure` and `log_in` open it."""

    def __init__(self, name: str, program: Sequence[str], options: Sequence[str], destination: str) -> None:
        self.name = name
        self.program, self.options = list(program), _jumps_as_settings(options)
        self.ssh = [*self.program, *self.options]
        self.destination = destination
        self.socket = sockets.folder() / digest("\0".join([*self.ssh, destination]), 6).hex()

    def seems_alive(self) -> bool:
        """Whether the socket exists. A killed master leaves its socket; the next command detects that."""
        return self.socket.exists()

    def alive(self) -> bool:
        """Whether a master listens on the socket. One that is stopped is ended: another one can take its place."""
        if not self.socket.exists():
            return False
        answer = greets(str(self.socket), min(GREETING, clocks().slow))
        return not self._end_stopped() if answer is None else answer

    def _end_stopped(self) -> bool:
        """End the master if it is stopped, as by SIGSTOP, and return whether it was; it may only be slow."""
        import subprocess

        argv = ["ps", "-A", "-ww", "-o", "pid=", "-o", "stat=", "-o", "args="]
        try:
            listed = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=LOCAL)
        except (OSError, subprocess.TimeoutExpired):
            return False
        words = " ".join([*MASTER, self.control_path, ""])
        mine = [line.split() for line in os.fsdecode(listed.stdout).splitlines() if words in line]
        stopped = [int(pid) for pid, state, *_words in mine if state.startswith("T")]
        for pid in stopped:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, 9)
        return bool(stopped)

    def settings(self) -> dict[str, str]:
        """Return the user's ssh settings for the destination, from `ssh -G`; {} if that fails."""
        return dict(self.setting_rows())

    def setting_rows(self) -> list[tuple[str, str]]:
        """Return the settings with those that occur several times."""
        import subprocess

        argv = [*self.ssh, "-G", self.destination]
        try:
            done = subprocess.run(
                argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=LOCAL
            )
        except (OSError, subprocess.TimeoutExpired):
            return []
        rows = [line.partition(" ") for line in done.stdout.splitlines()]
        return [(key, value) for key, _space, value in rows]

    def _note_session_settings(self, rows: Sequence[tuple[str, str]]) -> None:
        """Record how to open sessions on a new master without the ssh program, if that is possible."""
        settings = mux_settings.of_session(rows) if self.program == ["ssh"] and rows else None
        if settings is None:
            self.require_program()
        else:
            private.write(Path(f"{self.socket}.mux"), settings.text().encode())

    def session_settings(self) -> MuxSettings | None:
        """Return how to open sessions without the ssh program; None if they need it, such as if it is a script."""
        if not is_binary("ssh", os.environ.get("PATH", "")):
            return None
        try:
            return mux_settings.parse(Path(f"{self.socket}.mux").read_text())
        except (OSError, ValueError):
            return None

    def kept(self) -> list[str]:
        """Return the checksums of scripts that the destination was seen to have."""
        try:
            return Path(f"{self.socket}.kept").read_text().split()
        except (OSError, ValueError):
            return []

    def note_kept(self, names: Sequence[str]) -> None:
        """Record which scripts the destination has. If a concurrent record is lost, a script is sent again."""
        temporary = Path(f"{self.socket}.kept.{os.getpid()}.{threading.get_ident()}")
        private.write(temporary, "".join(f"{each}\n" for each in names[-50:]).encode())
        temporary.rename(f"{self.socket}.kept")

    def require_program(self) -> None:
        """Record that sessions on this master need the ssh program."""
        Path(f"{self.socket}.mux").unlink(missing_ok=True)

    def user_shares_connections(self, settings: dict[str, str]) -> bool:
        """Whether the user's ssh configuration shares connections; yurt then uses that connection."""
        return settings.get("controlmaster", "false") not in ("no", "false") and settings.get(
            "controlpath", "none"
        ) not in ("none", "")

    def ensure(self, limit: float) -> None:
        """Open a master if none is open and no prompt is needed. `limit`: how many seconds that may take.

        Raises the error for ssh's output; `ssh-login-required` means that only `yurt login` can open it.
        """
        if self.alive():
            return
        with self._locked(limit) as note:
            if self.alive():
                return
            self.socket.unlink(missing_ok=True)
            code, output = self._open(["-o", "BatchMode=yes"], limit=limit, prompt=False)
            if code != 0:
                note(output)
                raise self._failure(output)

    def ensure_users_own(self, settings: dict[str, str], limit: float) -> None:
        """Open the connection that the user's ssh configuration shares, if it is closed and no prompt is needed.

        It is opened by a command of its own, so that an error here means that nothing else reached the site.
        """
        if self._is_users_own_open(settings, limit):
            return
        options, limit = _limits(settings, limit)
        argv = [*self.ssh, *options, "-T", "-o", "BatchMode=yes", self.destination, "true"]
        code, output = self._run(argv, timeout=limit, prompt=False)
        if code == 255:
            raise self._failure(output)

    def _is_users_own_open(self, settings: dict[str, str], limit: float) -> bool:
        """Whether the connection that the user's ssh configuration shares is open. UnreachableError: it is frozen."""
        code = self._run_quietly([*self.ssh, "-O", "check", self.destination], min(LOCAL, limit))
        if code is None:
            path = shlex.quote(settings.get("controlpath", ""))
            raise UnreachableError(
                f"{self.name}: the connection that your ssh configuration shares does not respond",
                code="ssh-timeout",
                hint=f"end its ssh process, or remove its socket, so that ssh opens a new one: `rm {path}`",
            )
        return code == 0

    def log_in(self) -> bool:
        """Open a master; ssh may prompt the user. True if it was opened, False if it was already open.

        If the user's ssh configuration shares connections, open that connection instead.
        """
        if self.alive():
            return False
        if self.user_shares_connections(settings := self.settings()):
            if self._is_users_own_open(settings, LOCAL):
                return False
            options, _limit = _limits(settings, clocks().silent)
            code, output = self._run([*self.ssh, *options, self.destination, "true"], timeout=None, prompt=True)
        else:
            with self._locked(clocks().silent, PROMPTS):
                if self.alive():
                    return False
                self.socket.unlink(missing_ok=True)
                code, output = self._open([], limit=None, prompt=True)
        if code != 0:
            raise ssh_errors.classify(self.name, self.destination, output, interactive=True)
        self.note_response()
        return True

    def _failure(self, output: str) -> YurtError:
        """Return the error for ssh's output; a key that needs its passphrase needs `yurt login`."""
        error = ssh_errors.classify(self.name, self.destination, output)
        if error.code == "ssh-denied" and any(needs_passphrase(key) for key in self.identities()):
            return ssh_errors.login_needed(self.name, "your ssh key has a passphrase and is not loaded")
        return error

    def identities(self) -> list[Path]:
        """Return the private keys that ssh tries for the destination; they may not exist."""
        rows = self.setting_rows()
        user = dict(rows).get("user", "")
        found = [value.replace("%r", user).replace("%%", "%") for key, value in rows if key == "identityfile"]
        return [Path(value).expanduser() for value in found]

    def close(self) -> None:
        """Stop the master and every session on it."""
        self._run_quietly([*self.ssh, "-S", self.control_path, "-O", "exit", self.destination])

    @property
    def control_path(self) -> str:
        """The socket path for ssh, with percent signs escaped."""
        return str(self.socket).replace("%", "%%")

    def _run_quietly(self, argv: list[str], timeout: float = LOCAL) -> int | None:
        """Run ssh and return its exit code; None if it does not end in time, as with a master that is stopped."""
        import subprocess

        try:
            done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=timeout)
        except subprocess.TimeoutExpired:
            return None
        return done.returncode

    def _open(self, more: list[str], *, limit: float | None, prompt: bool) -> tuple[int, str]:
        """Open a master. `limit`: how many seconds that may take, or the user's ConnectTimeout; None: without one."""
        rows = self.setting_rows()
        limits, timeout = _limits(dict(rows), clocks().silent if limit is None else limit)
        options = ["-o", f"ControlPersist={LIFETIME}", "-o", "ExitOnForwardFailure=no", *more, *limits]
        argv = [*self.ssh, *options, *MASTER, self.control_path, self.destination]
        code, output = self._run(argv, timeout=None if limit is None else timeout, prompt=prompt)
        if code == 0:
            for ending in ("most", "noisy"):
                Path(f"{self.socket}.{ending}").unlink(missing_ok=True)
            self._note_session_settings(rows)
            with contextlib.suppress(OSError):
                from yurt.transport import lock_files  # not needed while a master is open

                lock_files.collect(self.socket.parent)
            if prompt:
                self._await_own_session()
        return code, output

    def _await_own_session(self) -> None:
        """Wait until a new master has left the session of this process.

        It does that shortly after the ssh that opened it has ended. If the session ends before, so does the master.
        """
        import subprocess

        argv = [*self.ssh, "-S", self.control_path, "-O", "check", self.destination]
        with contextlib.suppress(OSError, ValueError, subprocess.TimeoutExpired):
            done = subprocess.run(
                argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=LOCAL
            )
            pid = int(done.stderr.partition("(pid=")[2].partition(")")[0])
            until = time.monotonic() + 5
            while os.getsid(pid) == os.getsid(0) and time.monotonic() < until:
                time.sleep(0.005)

    def _run(self, argv: list[str], *, timeout: float | None, prompt: bool) -> tuple[int, str]:
        """Run ssh, which may leave a master in the background. Return its exit code and standard error."""
        import subprocess
        import tempfile

        counts.note_connection(self.name)
        # stderr goes to a file: the background master keeps a pipe open, and its reader would wait forever.
        with tempfile.TemporaryFile() as errors:
            try:
                process = subprocess.Popen(
                    argv,
                    stdin=None if prompt else subprocess.DEVNULL,
                    stdout=None if prompt else subprocess.DEVNULL,
                    stderr=None if prompt else errors,
                    start_new_session=not prompt,  # the end of our session must not end the master
                )
            except FileNotFoundError:
                return 255, f"{argv[0]}: program not found"
            try:
                code = process.wait(timeout)
            except subprocess.TimeoutExpired:
                return 255, "Connection timed out"
            finally:
                if process.returncode is None:
                    _end(process.pid, group=not prompt)
                    process.wait()
            errors.seek(0)
            return code, errors.read().decode(errors="replace")

    @contextlib.contextmanager
    def _locked(self, limit: float, content: str = "") -> Iterator[Callable[[str], None]]:
        """Hold the lock for opening the master, so that two commands do not open two.

        Yield what notes a failed attempt in the lock: its error is raised by commands that waited for it.
        UnreachableError after `limit` and a margin.
        """
        file, waited_since = f"{self.socket}.lock", 0.0
        deadline = time.monotonic() + limit + MARGIN
        while (descriptor := sockets.lock(file)) is None:
            waited_since = waited_since or time.time()
            if time.monotonic() > deadline:
                raise self._locked_too_long()
            time.sleep(0.05)

        def note(output: str) -> None:
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, output.encode()[-4096:], 0)

        try:
            failed = os.pread(descriptor, 4096, 0).decode(errors="replace")
            if failed not in ("", PROMPTS) and waited_since and os.fstat(descriptor).st_mtime >= waited_since:
                raise self._failure(failed)
            note(content)
            yield note
        finally:
            os.close(descriptor)

    def _locked_too_long(self) -> UnreachableError:
        """Return the error for a command that waited for another one, which connects or waits at a prompt."""
        if Path(f"{self.socket}.lock").read_text() == PROMPTS:
            return UnreachableError(
                f"{self.name}: another login is in progress and is waiting for input",
                code="ssh-login-required",
                hint="complete that login, then run the command again",
            )
        return UnreachableError(
            f"{self.name}: another yurt command is still connecting to {self.destination}",
            code="ssh-timeout",
            hint="check your network or VPN, then run the command again",
        )

    @contextlib.contextmanager
    def slot(self, deadline: float) -> Iterator[None]:
        """Hold one of the master's session slots; wait until one is free. UnreachableError after `deadline`."""
        descriptor = self._free_slot()
        if descriptor is None:
            with patience(f"a free session of the ssh connection to {self.name}", deadline - time.monotonic()):
                descriptor = self._awaited_slot(deadline)
        try:
            yield
        finally:
            os.close(descriptor)

    def _free_slot(self) -> int | None:
        """Return the descriptor of a slot that is now held; None if all are in use."""
        slots = (sockets.lock(f"{self.socket}.slot{number}") for number in range(self.session_limit()))
        return next((descriptor for descriptor in slots if descriptor is not None), None)

    def _awaited_slot(self, deadline: float) -> int:
        while (descriptor := self._free_slot()) is None:
            if time.monotonic() > deadline:
                raise UnreachableError(
                    f"{self.name}: all {self.session_limit()} sessions of the ssh connection are in use",
                    code="ssh-busy",
                    hint="run the command again when other yurt commands have finished",
                )
            time.sleep(0.05)
        return descriptor

    def note_silent(self, part: str = "") -> None:
        """Record that the destination does not respond, or a part of it: others then do not wait for it for a while.

        The time of an earlier record counts: after that while, the destination gets the full time again.
        """
        file = self._silent(part)
        if not self.rests(part):
            private.write(Path(file), b"")
            os.utime(file)
        _gave_up[file] = time.monotonic()

    def note_response(self, part: str = "") -> None:
        """Record that the destination responds, or a part of it."""
        file = self._silent(part)
        _gave_up.pop(file, None)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(file)

    def silent_since(self, part: str = "") -> float | None:
        """Return when the destination, or a part of it, did not respond, if it has not responded since."""
        try:
            return os.stat(self._silent(part)).st_mtime
        except FileNotFoundError:
            return None

    def rests(self, part: str = "") -> bool:
        """Whether it did not respond a while ago, and is not waited for now, or only for a moment."""
        since = self.silent_since(part)
        return since is not None and 0 <= time.time() - since < clocks().rest

    def gave_up(self, part: str = "") -> bool:
        """Whether this process itself has waited in vain during that while."""
        at = _gave_up.get(self._silent(part))
        return at is not None and time.monotonic() - at < clocks().rest

    def _silent(self, part: str) -> str:
        return f"{self.socket}.{part or 'silent'}"

    def session_limit(self) -> int:
        """Return how many concurrent sessions sshd accepts: 8 until it has rejected one."""
        try:
            return max(1, min(SESSIONS, int(Path(f"{self.socket}.most").read_text())))
        except (FileNotFoundError, ValueError):
            return SESSIONS

    def lower_session_limit(self) -> None:
        """Record that sshd rejected a session: use one fewer until the next master is opened."""
        fewer = max(1, self.session_limit() - 1)
        temporary = Path(f"{self.socket}.most.{os.getpid()}.{threading.get_ident()}")
        private.write(temporary, str(fewer).encode())
        temporary.rename(f"{self.socket}.most")


def _limits(settings: dict[str, str], limit: float) -> tuple[list[str], float]:
    """Return ssh's options for a limit of time until it is connected, and of silence afterwards; and that limit.

    What the user's ssh configuration sets for them stays, also if it allows more time.
    """
    options: list[str] = []
    if settings.get("serveraliveinterval", "0") == "0":
        options += ["-o", f"ServerAliveInterval={max(1, round(clocks().silent / 3))}", "-o", "ServerAliveCountMax=3"]
    own = settings.get("connecttimeout", "none")
    if own == "none":
        return [*options, "-o", f"ConnectTimeout={max(1, round(limit))}"], limit
    return options, max(limit, float(own)) if own.isdigit() and limit >= clocks().silent else limit


def _end(process: int, *, group: bool) -> None:
    """Kill an ssh, with its children if it has a process group of its own."""
    with contextlib.suppress(ProcessLookupError):
        (os.killpg if group else os.kill)(process, 9)


def _jumps_as_settings(options: Sequence[str]) -> list[str]:
    """Replace `-J gate` by `-o ProxyJump=gate`: ssh accepts only the latter together with a ProxyCommand."""
    found: list[str] = []
    remaining = iter(options)
    for option in remaining:
        if option == "-J":
            found += ["-o", f"ProxyJump={next(remaining, '')}"]
        elif option.startswith("-J"):
            found += ["-o", f"ProxyJump={option[2:]}"]
        else:
            found.append(option)
    return found


def needs_passphrase(key: Path) -> bool:
    """Whether a private key exists and cannot be read without a passphrase."""
    if not key.is_file():
        return False
    argv = ["ssh-keygen", "-y", "-P", "", "-f", str(key)]
    import subprocess

    done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    return done.returncode != 0 and "passphrase" in done.stderr
