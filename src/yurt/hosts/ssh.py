"""A host reached by the user's own OpenSSH, with the user's own configuration."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Sequence

from yurt.errors import UnreachableError, UserError, YurtError
from yurt.hosts import ssh_errors
from yurt.hosts.base import TIMEOUT, Host
from yurt.hosts.master import Master

REFUSED = b"Session open refused by peer"
NO_MASTER = "yurt: no master"


class SshHost(Host):
    """A login host. Commands share one connection, which is opened when that needs no prompt."""

    def __init__(self, name: str, destination: str, options: Sequence[str] = (), program: Sequence[str] = ()) -> None:
        if destination.startswith("-") or not destination.isprintable() or " " in destination:
            raise UserError(  # ssh would take it for an option, or for something else than one word
                f"slurm_url of context '{name}' is no address: {destination!r}",
                code="config-invalid",
                hint="for example: alice@login.big.example",
            )
        self.name = name
        self.destination = destination
        self.master = Master(name, program or ("ssh",), options, destination)
        self._users_own = False
        self._doubted = False

    def argv(self, command: str) -> list[str]:
        batch = ["-T", "-o", "BatchMode=yes"]
        if self._users_own:
            return [*self.master.ssh, *batch, self.destination, command]
        # No other way than the master: a client that sshd refuses a session would else connect anew.
        no_other = f"ProxyCommand=sh -c 'echo {NO_MASTER} >&2'"
        only = ["-o", "ControlMaster=no", "-o", no_other, "-S", self.master.control_path]
        return [*self.master.program, *only, *batch, *self.master.options, self.destination, command]

    def terminal(self, command: str) -> list[str]:
        return ["-t" if word == "-T" else word for word in self.argv(command)]

    @contextlib.contextmanager
    def session(self, deadline: float) -> Iterator[None]:
        if not (self.master.alive() if self._doubted else self.master.seems_alive()):
            self._users_own = self.master.is_users_own(self.master.settings())
            if not self._users_own:
                self.master.ensure(deadline)
        with self.master.slot(deadline):
            yield

    @contextlib.contextmanager
    def forward(self, node: str, port: int) -> Iterator[int]:
        import subprocess
        from socket import socket

        with self.session(time.monotonic() + TIMEOUT):
            own = [] if self._users_own else ["-S", self.master.control_path]
        with socket() as free:
            free.bind(("127.0.0.1", 0))
            here = int(free.getsockname()[1])
        ask = [*self.master.ssh, *own, "-o", "BatchMode=yes", "-O"]
        way = ["-L", f"127.0.0.1:{here}:{node or '127.0.0.1'}:{port}", self.destination]
        done = subprocess.run([*ask, "forward", *way], stdin=subprocess.DEVNULL, capture_output=True, check=False)
        if done.returncode:
            raise ssh_errors.classify(self.name, self.destination, done.stderr.decode(errors="replace"))
        try:
            yield here
        finally:
            subprocess.run([*ask, "cancel", *way], stdin=subprocess.DEVNULL, capture_output=True, check=False)

    def socket(self) -> str:
        return "" if self._users_own else str(self.master.socket)

    def connected(self) -> bool:
        """Whether yurt's connection is open now."""
        return self.master.alive()

    def log_in(self) -> bool:
        """Open the connection, letting ssh ask the person; False if it was open."""
        return self.master.log_in()

    def retry(self, errors: bytes, attempt: int) -> bool:
        """Too many sessions for sshd, or a master that died just now: once more through what there is."""
        if REFUSED in errors:
            self.master.bear_fewer()
            time.sleep(0.1)
            return True
        if NO_MASTER.encode() in errors and attempt < 5:
            if self._doubted:
                time.sleep(0.05 * attempt)
            self._doubted = True
            return True
        return False

    def lost(self, returned: int, errors: bytes, *, begun: bool) -> YurtError:
        words = errors.decode(errors="replace")
        if begun:
            return UnreachableError(
                f"{self.name}: the connection was cut before the answer was complete",
                code="connection-lost",
                hint="repeat the command: it is safe to",
            )
        if returned == 255:
            return ssh_errors.classify(self.name, self.destination, words)
        return super().lost(returned, errors, begun=begun)
