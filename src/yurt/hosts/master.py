"""One ssh connection per context, shared by all of yurt's commands through OpenSSH's own multiplexing."""

from __future__ import annotations

import contextlib
import fcntl
import os
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from yurt.errors import UnreachableError, YurtError
from yurt.hosts import sockets, ssh_errors
from yurt.model.digest import digest

SESSIONS = 8
"""At most this many sessions at once on one master, over all yurt processes of a user."""

LIFETIME = "12h"

PATIENCE = 20.0
"""Seconds to wait for another yurt that is opening the connection."""


class Master:
    """The master connection of one destination. Nothing is opened before `ensure` or `log_in`."""

    def __init__(self, name: str, program: Sequence[str], options: Sequence[str], destination: str) -> None:
        self.name = name
        self.program, self.options = list(program), _jumps_as_settings(options)
        self.ssh = [*self.program, *self.options]
        self.destination = destination
        self.socket = sockets.folder() / digest("\0".join([*self.ssh, destination]), 6).hex()

    def seems_alive(self) -> bool:
        """Whether there is a socket. One of a killed master stays behind, which the next command notices."""
        return self.socket.exists()

    def alive(self) -> bool:
        """Whether a master listens on the socket."""
        import socket

        if not self.socket.exists():
            return False
        probe = socket.socket(socket.AF_UNIX)
        try:
            probe.settimeout(2)
            probe.connect(str(self.socket))
        except OSError:
            return False
        finally:
            probe.close()
        return True

    def settings(self) -> dict[str, str]:
        """What the user's ssh would do, by `ssh -G`; {} if it cannot say."""
        import subprocess

        argv = [*self.ssh, "-G", self.destination]
        try:
            done = subprocess.run(
                argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=10
            )
        except (OSError, subprocess.TimeoutExpired):
            return {}
        return dict(line.partition(" ")[::2] for line in done.stdout.splitlines())

    def is_users_own(self, settings: dict[str, str]) -> bool:
        """Whether the user's config shares connections itself: then yurt uses theirs."""
        return settings.get("controlmaster", "false") not in ("no", "false") and settings.get(
            "controlpath", "none"
        ) not in ("none", "")

    def ensure(self, deadline: float) -> None:
        """Have a master, opening one if that needs no prompt. Raises what `yurt login` would mend."""
        if self.alive():
            return
        with self._locked(min(deadline, time.monotonic() + PATIENCE)):
            if self.alive():
                return
            self.socket.unlink(missing_ok=True)
            left = max(1.0, deadline - time.monotonic())
            code, words = self._open(["-o", "BatchMode=yes"], timeout=left, prompt=False)
            if code != 0:
                raise self._failure(words)

    def log_in(self) -> bool:
        """Open a master, letting ssh ask the person. True if one was opened, False if there was one.

        Where the user's own config shares connections, that is the one that is opened.
        """
        if self.alive():
            return False
        if self.is_users_own(self.settings()):
            if self._quietly([*self.ssh, "-O", "check", self.destination]) == 0:
                return False
            import subprocess

            code, words = subprocess.call([*self.ssh, self.destination, "true"]), ""
        else:
            with self._locked(time.monotonic() + PATIENCE):
                if self.alive():
                    return False
                self.socket.unlink(missing_ok=True)
                code, words = self._open([], timeout=None, prompt=True)
        if code != 0:
            raise ssh_errors.classify(self.name, self.destination, words, asked=True)
        return True

    def _failure(self, words: str) -> YurtError:
        """What ssh's words mean; a key it could not use without its passphrase is a matter for `yurt login`."""
        error = ssh_errors.classify(self.name, self.destination, words)
        if error.code == "ssh-denied" and any(_wants_passphrase(key) for key in self._identities()):
            return ssh_errors.login_needed(self.name, "your key has a passphrase, which only you can type")
        return error

    def _identities(self) -> list[Path]:
        import subprocess

        argv = [*self.ssh, "-G", self.destination]
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=10)
        rows = (line.partition(" ") for line in done.stdout.splitlines())
        user = self.settings().get("user", "")
        found = [value.replace("%r", user).replace("%%", "%") for key, _, value in rows if key == "identityfile"]
        return [Path(value).expanduser() for value in found]

    def close(self) -> None:
        """End the master, and with it every session on it."""
        self._quietly([*self.ssh, "-S", self.control_path, "-O", "exit", self.destination])

    @property
    def control_path(self) -> str:
        """The socket as ssh takes it: a percent sign would be expanded."""
        return str(self.socket).replace("%", "%%")

    def _quietly(self, argv: list[str]) -> int:
        import subprocess

        return subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=10).returncode

    def _open(self, more: list[str], *, timeout: float | None, prompt: bool) -> tuple[int, str]:
        options = ["-o", f"ControlPersist={LIFETIME}", "-o", "ExitOnForwardFailure=no", *more]
        settings = self.settings()
        if settings.get("serveraliveinterval", "0") == "0":
            options += ["-o", "ServerAliveInterval=10", "-o", "ServerAliveCountMax=2"]
        if settings.get("connecttimeout", "none") == "none":
            options += ["-o", "ConnectTimeout=15"]
        argv = [*self.ssh, *options, "-M", "-N", "-f", "-T", "-S", self.control_path, self.destination]
        import subprocess
        import tempfile

        # Into a file: a master in the background keeps a pipe open, and its reader waiting, for ever.
        with tempfile.TemporaryFile() as errors:
            try:
                done = subprocess.run(
                    argv,
                    stdin=None if prompt else subprocess.DEVNULL,
                    stdout=None if prompt else subprocess.DEVNULL,
                    stderr=None if prompt else errors,
                    check=False,
                    timeout=timeout,
                )
            except subprocess.TimeoutExpired:
                return 255, "Connection timed out"
            except FileNotFoundError:
                return 255, f"{argv[0]}: program not found"
            if done.returncode == 0:
                Path(f"{self.socket}.most").unlink(missing_ok=True)
            errors.seek(0)
            return done.returncode, errors.read().decode(errors="replace")

    @contextlib.contextmanager
    def _locked(self, deadline: float) -> Iterator[None]:
        """Two commands that both find no master must not open two; a person at a prompt is not waited for."""
        descriptor = os.open(f"{self.socket}.lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            while True:
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if time.monotonic() > deadline:
                        raise ssh_errors.login_needed(
                            self.name, "a login is under way, and waits for its person"
                        ) from None
                    time.sleep(0.05)
            yield
        finally:
            os.close(descriptor)

    @contextlib.contextmanager
    def slot(self, deadline: float) -> Iterator[None]:
        """Hold one of the sessions this master may carry; waits for one to become free."""
        while True:
            for number in range(self.most()):
                descriptor = os.open(f"{self.socket}.slot{number}", os.O_RDWR | os.O_CREAT, 0o600)
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    os.close(descriptor)
                    continue
                try:
                    yield
                finally:
                    os.close(descriptor)
                return
            if time.monotonic() > deadline:
                raise UnreachableError(
                    f"{self.name}: all {self.most()} sessions of the connection stayed busy",
                    code="ssh-busy",
                    hint="repeat the command when the others are done",
                )
            time.sleep(0.05)

    def most(self) -> int:
        """How many sessions sshd was seen to bear: 8 unless it refused."""
        try:
            return max(1, min(SESSIONS, int(Path(f"{self.socket}.most").read_text())))
        except (FileNotFoundError, ValueError):
            return SESSIONS

    def bear_fewer(self) -> None:
        """Remember that sshd refused a session: one fewer from now on, until the master is gone."""
        fewer = max(1, self.most() - 1)
        aside = Path(f"{self.socket}.most.{os.getpid()}.{threading.get_ident()}")
        aside.write_text(str(fewer))
        aside.rename(f"{self.socket}.most")


def _jumps_as_settings(options: Sequence[str]) -> list[str]:
    """ssh options with `-J gate` as `-o ProxyJump=gate`: the same, but ssh lets a ProxyCommand stand beside it."""
    found: list[str] = []
    words = iter(options)
    for word in words:
        if word == "-J":
            found += ["-o", f"ProxyJump={next(words, '')}"]
        elif word.startswith("-J"):
            found += ["-o", f"ProxyJump={word[2:]}"]
        else:
            found.append(word)
    return found


def _wants_passphrase(key: Path) -> bool:
    """Whether a private key is there and cannot be read without a passphrase."""
    if not key.is_file():
        return False
    argv = ["ssh-keygen", "-y", "-P", "", "-f", str(key)]
    import subprocess

    done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    return done.returncode != 0 and "passphrase" in done.stderr
