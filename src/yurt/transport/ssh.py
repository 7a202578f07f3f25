"""A host reached with the user's OpenSSH and the user's ssh configuration."""

from __future__ import annotations

import contextlib
import os
import shlex
import time
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING

from yurt import private
from yurt.clocks import clocks, within
from yurt.errors import UnreachableError, UserError, YurtError
from yurt.model.digest import digest
from yurt.model.progress import patience
from yurt.transport import counts, queue_prefetch, session_ahead, ssh_errors, wire
from yurt.transport.base import TIMEOUT, Host
from yurt.transport.command import Silent
from yurt.transport.master import Master

if TYPE_CHECKING:
    from yurt.model.site_words import NodeName
    from yurt.transport.command import Command
    from yurt.transport.wire import Parcel

REFUSED = b"Session open refused by peer"

LOST = 255
"""The exit code of ssh without a connection."""

SHARED = "600"
"""Seconds for which an unused connection to a node stays."""

SILENCE = ("ssh-timeout", "ssh-no-route")
"""Errors of a connection attempt after which other commands do not wait for the host for a while."""


class SshHost(Host):
    """A login node. Commands share one connection, which yurt opens by itself if ssh needs no prompt."""

    def __init__(self, name: str, destination: str, options: Sequence[str] = (), program: Sequence[str] = ()) -> None:
        if destination.startswith("-") or not destination.isprintable() or " " in destination:
            raise UserError(  # ssh would read it as an option, or as more than one argument
                f"slurm_url of context '{name}' is not a valid address: {destination!r}",
                code="config-invalid",
                hint="for example: `slurm_url: alice@login.big.example`",
            )
        self.name = name
        self.destination = destination
        self.master = Master(name, program or ("ssh",), options, destination)
        self._uses_user_master = False
        self._recheck_master = False
        # ssh prints this word if it could not open a session on the master. The site cannot print it: it does not
        # know the word. So the word proves that no command reached the site.
        self._no_session = f"yurt-no-session-{os.urandom(8).hex()}"

    def argv(self, command: str) -> list[str]:
        batch = ["-T", "-o", "BatchMode=yes"]
        if self._uses_user_master:
            return [*self.master.ssh, *batch, self.destination, command]
        # Use the master only: if sshd refuses a session, ssh would otherwise open a new connection.
        no_direct = f"ProxyCommand=sh -c 'echo {self._no_session} >&2'"
        master_only = ["-o", "ControlMaster=no", "-o", no_direct, "-S", self.master.control_path]
        return [*self.master.program, *master_only, *batch, *self.master.options, self.destination, command]

    def start(self, parcel: Parcel, err: IO[bytes] | None) -> Command:
        """Start a command, without the ssh program if possible. Whatever fails is left to that program."""
        session_ahead.drop()
        settings = None if self._uses_user_master or self._recheck_master else self.master.session_settings()
        if settings is None:
            return super().start(parcel, err)
        from yurt.transport.mux import MuxSession, NoSession, Unusable

        try:
            session = MuxSession(str(self.master.socket), parcel.command, settings, err)
            session.wait_until_open(clocks().slow, self.silence(), self.report_slow)
        except Silent:
            raise self.did_not_respond() from None
        except NoSession:
            return super().start(parcel, err)
        except Unusable:
            self.master.require_program()
            return super().start(parcel, err)
        counts.note_command(self.name)
        return session

    def opened_ahead(self, name: str) -> tuple[Command, str] | None:
        opened = session_ahead.take(str(self.master.socket), name)
        if opened is None:
            return None
        from yurt.transport.mux import MuxSession, NoSession, Unusable

        try:
            session = MuxSession.adopt(opened.control, opened.streams)
            session.wait_until_open(clocks().slow, self.silence(), self.report_slow)
            session.require_running()
        except Silent:
            raise self.did_not_respond() from None
        except (NoSession, Unusable):
            return None
        counts.note_command(self.name)
        return session, opened.missing

    def open_ahead_next_time(self, name: str) -> None:
        missing = f"yurt-missing-{os.urandom(8).hex()}"
        command, opener = wire.opener(name, missing)
        request, variables = self.session_request(command)
        if request and not self._uses_user_master:
            path = str(self.master.socket)
            session_ahead.save(path, name, missing, request=request, variables=variables, opener=opener)

    def terminal(self, command: str) -> list[str]:
        words = ["-t" if word == "-T" else word for word in self.argv(command)]
        return [*words[:-2], "-o", "LogLevel=ERROR", *words[-2:]]  # no "Shared connection closed" at the end

    def relay(self, command: str) -> list[str]:
        return [*self._login(), "-T", self.destination, command]

    def hop(self, node: NodeName, known_hosts: Path, command: str, *, prompt: bool, share: str = "") -> list[str]:
        through = shlex.join([*self._login(), "-W", f"{node}:22", self.destination])
        settings = {  # the first value of a setting counts, so these go before the options for the login node
            "ProxyCommand": through.replace("%", "%%"),
            "HostName": node,
            "Port": "22",
            "User": self.master.settings().get("user", ""),
            "HostKeyAlias": node,
            "UserKnownHostsFile": f'"{known_hosts}"'.replace("%", "%%"),
            "GlobalKnownHostsFile": "/dev/null",
            "StrictHostKeyChecking": "yes",
            "UpdateHostKeys": "no",
            "ControlPath": "none",
            "BatchMode": "no" if prompt else "yes",
            "ConnectTimeout": f"{max(1, round(clocks().silent))}",
        }
        if share:
            path = self.master.socket.with_name(digest(f"{self.master.socket}\0{node}\0{share}", 6).hex())
            settings |= {"ControlMaster": "auto", "ControlPath": f'"{path}"'.replace("%", "%%")}
            settings |= {"ControlPersist": SHARED, "ServerAliveInterval": f"{max(1, round(clocks().silent / 3))}"}
            settings |= {"ServerAliveCountMax": "3"}
        words = [word for key, value in settings.items() if value for word in ("-o", f"{key}={value}")]
        return [*self.master.program, *words, *self.master.options, "-T", "--", node, command]

    def _login(self) -> list[str]:
        """Return ssh on the shared connection; if that has no free session, on a connection of its own."""
        shared = [] if self._uses_user_master else ["-o", "ControlMaster=no", "-S", self.master.control_path]
        return [*self.master.program, *shared, *self.master.options]

    @contextlib.contextmanager
    def session(self, deadline: float) -> Iterator[None]:
        if not self.master.alive():
            settings = self.master.settings()
            self._uses_user_master = self.master.user_shares_connections(settings)
            limit = min(self.limit(), max(1.0, deadline - time.monotonic()))
            with self._opening():
                if self._uses_user_master:
                    self.master.ensure_users_own(settings, limit)
                else:
                    self.master.ensure(limit)
        with self.master.slot(deadline):
            yield

    @contextlib.contextmanager
    def _opening(self) -> Iterator[None]:
        """Report an attempt to connect that takes long, and note whether the host responds."""
        try:
            with patience(f"{self.name} to respond", self.limit()):
                yield
            self.note_response()
        except YurtError as error:
            if error.code in SILENCE:
                self.note_silent()
            raise

    @contextlib.contextmanager
    def forward(self, node: NodeName | None, port: int) -> Iterator[int]:
        import subprocess
        from socket import socket

        with self.session(time.monotonic() + TIMEOUT):
            own = [] if self._uses_user_master else ["-S", self.master.control_path]
        with socket() as free:
            free.bind(("127.0.0.1", 0))
            local_port = int(free.getsockname()[1])
        control = [*self.master.ssh, *own, "-o", "BatchMode=yes", "-O"]
        tunnel = ["-L", f"127.0.0.1:{local_port}:{node or '127.0.0.1'}:{port}", self.destination]
        try:
            done = subprocess.run(
                [*control, "forward", *tunnel],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                check=False,
                timeout=self.silence(),
            )
        except subprocess.TimeoutExpired:
            raise self.did_not_respond() from None
        if done.returncode:
            raise ssh_errors.classify(self.name, self.destination, done.stderr.decode(errors="replace"))
        try:
            yield local_port
        finally:
            with contextlib.suppress(subprocess.TimeoutExpired):
                subprocess.run(
                    [*control, "cancel", *tunnel],
                    stdin=subprocess.DEVNULL,
                    capture_output=True,
                    check=False,
                    timeout=self.silence(),
                )

    def session_request(self, command: str) -> queue_prefetch.Request:
        settings = self.master.session_settings()
        if settings is None:
            return b"", []
        from yurt.transport import mux

        sent = [each.partition("=")[::2] for each in settings.variables(os.environ) if each not in settings.given]
        return mux.request(command, settings), sent

    def socket(self) -> str:
        return "" if self._uses_user_master else str(self.master.socket)

    def kept(self) -> Collection[str] | None:
        return None if self._uses_user_master else self.master.kept()

    def note_kept(self, name: str) -> None:
        self.master.note_kept([*self.master.kept(), name])

    def forget_kept(self, name: str) -> None:
        self.master.note_kept([each for each in self.master.kept() if each != name])

    def is_noisy(self) -> bool:
        """Whether the login was seen to print something before the output of a command."""
        return Path(f"{self.master.socket}.noisy").exists()

    def note_noisy(self) -> None:
        """Note that, until the next connection is opened."""
        private.write(Path(f"{self.master.socket}.noisy"), b"")

    def limit(self, part: str = "") -> float:
        return within(clocks().again if self.master.rests(part) else clocks().silent)

    def silence(self) -> float | None:
        return self.limit()

    def note_silent(self, part: str = "") -> None:
        if self.master.rests(part) or self.limit(part) >= clocks().silent:  # else the user's own limit was shorter
            self.master.note_silent(part)

    def note_response(self, part: str = "") -> None:
        self.master.note_response(part)

    def silent_since(self, part: str = "") -> float | None:
        return self.master.silent_since(part)

    def gave_up(self, part: str = "") -> bool:
        return self.master.gave_up(part)

    def connected(self) -> bool:
        """Whether yurt's connection is open."""
        return self.master.alive()

    def log_in(self) -> bool:
        """Open the connection; ssh may prompt the user. False if it was already open."""
        return self.master.log_in()

    def retry(self, errors: bytes, attempt: int) -> bool:
        """Whether to retry: sshd refused one more session, or the master has just died. Nothing reached the site."""
        if self._no_session.encode() not in errors:
            return False
        if REFUSED in errors:
            self.master.lower_session_limit()
            time.sleep(0.1)
            return True
        if attempt < 5:
            if self._recheck_master:
                time.sleep(0.05 * attempt)
            self._recheck_master = True
            return True
        return False

    def lost(self, returned: int, errors: bytes, *, begun: bool) -> YurtError:
        """Return the error for a command that was passed to an open connection: it may have run.

        Standard error proves nothing: dotfiles on the site write to it, too.
        """
        lines = [] if begun else errors.decode(errors="replace").strip().splitlines()[-1:]
        last = "".join(f": {line.strip()}" for line in lines)
        if not begun and 0 <= returned < LOST:
            return UnreachableError(
                f"{self.name}: the login shell ended, and yurt's command printed nothing, as with `exit` or `read` in"
                f" ~/.bashrc (exit code {returned}){last}",
                code="login-shell",
                hint="check the dotfiles on the site for `exit`, `exec`, `read` and `set -e`; without a terminal, they "
                "must neither end the shell nor read its input",
            )
        what = "before the output was complete" if begun else "before the remote command answered"
        return UnreachableError(
            f"{self.name}: lost connection {what}{last}",
            code="connection-lost",
            hint=ssh_errors.RETRY,
        )
