"""Runs Unison as the client of a pair, on this machine or on the login host of the hub, and returns what it printed."""

from __future__ import annotations

import contextlib
import os
import selectors
import shlex
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec

from yurt import private
from yurt.clocks import clocks
from yurt.errors import UserError
from yurt.homes import confined, here, output, profile, scripts
from yurt.homes.places import Pair, Place
from yurt.model.progress import Event, Watch, report_slow, waiting
from yurt.transport.base import TIMEOUT
from yurt.transport.ssh import SshHost

BATCH = ("-batch", "-auto", "-dumbtty", "-contactquietly", "-log=false")
"""Without -terse, Unison prints its progress. With a log, it would write to a file of the user."""

Echo = Callable[[str, bytes], None]
"""Gets "out" or "err", and a piece of that stream."""

STEP = 5
"""Per cent between two events of progress."""

KEEP_ALIVE = ("-o", "ServerAliveInterval=15", "-o", "ServerAliveCountMax=3")


class Start(msgspec.Struct, frozen=True, kw_only=True):
    """The start of a sync by this machine, whose lock is held."""

    identity: str
    name: str
    lock: int
    stamp: str = ""
    token: str = ""
    direct: bool = False
    """Whether a person reads what Unison prints."""
    terminal: bool = False
    """Whether Unison uses the user's terminal."""
    known: bool = False
    """Whether this machine has synced the pair before."""
    check: str = "no-check"
    """How the sides compare the files of which the last sync was unsure, see sure.sh."""
    again: bool = False
    """Whether this is not the first Unison of its sync."""
    partly: bool = False
    """Whether it may not sync everything."""
    keep: bool = False
    """Whether it copies no deletions."""
    refill: str = ""
    """The place that is filled again if it has lost everything."""
    refilling: bool = False
    """Whether it has lost everything."""

    def another(
        self,
        *,
        direct: bool = False,
        terminal: bool = False,
        known: bool | None = None,
        check: str = "no-check",
        again: bool = False,
        partly: bool = False,
        keep: bool = False,
    ) -> Start:
        """Return the start of another Unison: with the time now, and a token of its own."""
        stamp, token = here.moment()
        return Start(
            identity=self.identity,
            name=self.name,
            lock=self.lock,
            stamp=stamp,
            token=token,
            direct=direct,
            terminal=terminal,
            known=self.known if known is None else known,
            check=check,
            again=again,
            partly=partly,
            keep=keep,
            refill=self.refill,
        )

    @property
    def folder(self) -> str:
        """The name of its folder in the backups."""
        return f"{self.stamp}-{self.token}"


class Finished(msgspec.Struct, frozen=True, kw_only=True):
    """A Unison that has ended."""

    code: int
    out: bytes
    err: bytes
    printed: output.Printed


def record(pair: Pair, identity: str) -> str:
    """Return the name under which both sides save what a sync of this machine has to remember."""
    return f"{identity}.{pair.hub.name}.{pair.spoke.name}"


def side(pair: Pair, place: Place, start: Start) -> scripts.Side:
    """Return the settings of the script of one side."""
    return scripts.Side(
        token=start.token,
        stamp=start.stamp,
        client=start.identity,
        client_name=start.name,
        place=place.name,
        # Several machines are each `local`; their archives on a login host must not be mixed up.
        identity=f"yurt-local-{start.identity}" if place.here else f"yurt-{place.name}",
        root=place.folder,
        unison=place.settings.unison,
        backups=place.homes.backups,
        known="1" if start.known and not place.here else "",  # this machine remembers its own folders
        record=record(pair, start.identity),
        check=start.check,
        again=start.again,
        partly=start.partly,
        here=place.here,
        refill=start.refilling and start.refill == place.name,
        direct=start.direct,
    )


def unison_root(pair: Pair, place: Place) -> str:
    """Return a root as an argument of Unison; the server's relative to its home, so that nobody has to ask for it."""
    return place.root if place is pair.client else f"ssh://yurt-{place.name}/{place.folder}"


def run(
    pair: Pair, start: Start, arguments: Sequence[str], watch: Watch, echo: Echo = lambda _into, _chunk: None
) -> Finished:
    """Run one sync in batch mode. UnreachableError if a place cannot be reached, before Unison has started.

    `echo` gets what Unison prints as it comes.
    """
    out, err, code = bytearray(), bytearray(), 3
    text = f"syncing {pair.name}"
    watch(Event(f"{text}: looking for changes"))

    shown = -1

    def show(chunk: bytes) -> None:
        nonlocal shown
        done = output.percent(chunk)
        if done is not None and done // STEP != shown:
            shown = done // STEP
            watch(Event(f"{text}: {done} %", done, 100))

    if pair.client.here:
        with started(pair, start, [*BATCH, *arguments]) as process:
            import tempfile  # noqa: F401 (needed afterwards; now there is time)

            for into, chunk in _chunks(process, f"Unison on {pair.server.name} to respond"):
                (out if into == "out" else err).extend(chunk)
                echo(into, chunk)
                show(chunk)
        code = process.returncode
    else:
        script = _client_script(pair, start, _link_from_hub(pair, start))
        with pair.client.host.stream(script, *BATCH, *arguments, timeout=TIMEOUT, part="Unison") as stream:
            for chunk in stream:
                out.extend(chunk)
                show(chunk)
            code, err = stream.code if stream.code is not None else 3, bytearray(stream.err)
    return Finished(code=code, out=bytes(out), err=bytes(err), printed=output.read(bytes(out), bytes(err), start.token))


@contextlib.contextmanager
def started(pair: Pair, start: Start, arguments: Sequence[str]) -> Iterator[subprocess.Popen[bytes]]:
    """Start Unison on this machine; on exit it has ended.

    UnreachableError if the server's host cannot be reached.
    """
    with pair.server.host.session(time.monotonic() + TIMEOUT):
        script = _client_script(pair, start, _link_from_here(pair, start))
        batch = not start.terminal
        pipe = subprocess.PIPE if batch else None
        # In batch mode the lock is Unison's standard input: so its children do not inherit it, which may outlive it
        # by the time that ssh needs to notice a lost connection.
        processes: list[subprocess.Popen[bytes]] = []

        def begin() -> None:
            processes.append(
                subprocess.Popen(
                    ["sh", "-c", script, "yurt", *arguments],
                    stdin=start.lock if batch else None,
                    stdout=pipe,
                    stderr=pipe,
                    pass_fds=() if batch else (start.lock,),
                    start_new_session=batch,
                )
            )

        try:
            if pair.client.homes.unison_writes == "anywhere":
                begin()
            else:
                _check_settings(pair.client, arguments)
                _make_folders(pair.client, start)
                confined.call(begin, writable(pair.client))
            yield processes[0]
        finally:
            for process in processes:
                if batch:
                    _stop(process)
                else:
                    process.wait()


def _check_settings(place: Place, arguments: Sequence[str]) -> None:
    """UserError if Unison gets a setting with which it writes elsewhere: another home may have written the profile."""
    if found := profile.writes_elsewhere(profile.read(place)[1], arguments):
        raise UserError(
            f"the setting '{found}' lets Unison write outside of the home",
            code="config-invalid",
            hint="remove it, see `yurt home profile`, or allow it with `unison_writes: anywhere` in homes.yaml",
        )


def writable(place: Place) -> list[str]:
    """Return the folders of this machine in which what a sync starts may write."""
    unison = profile.folder()
    backups = Path.home() / place.homes.backups if place.homes.backups else unison / "backup"
    return [str(each) for each in (place.folder, unison, backups, os.environ.get("TMPDIR") or "/tmp")]


def _make_folders(place: Place, start: Start) -> None:
    """Create the folders that the script would create. A root that was there before is not mounted, and not created."""
    root, unison, backups, _temporary = (Path(each) for each in writable(place))
    roots = unison / "yurt" / "roots"
    with contextlib.suppress(OSError):  # the script has the words for it
        private.make_folder(backups)
        known = roots.read_text(errors="surrogateescape").splitlines() if roots.exists() else []
        if place.folder not in known or (start.refilling and start.refill == place.name):
            private.make_folder(root)


def _client_script(pair: Pair, start: Start, link: str) -> str:
    return scripts.client(
        side(pair, pair.client, start),
        locked=pair.client.here,
        link=link,
        profile=pair.client.homes.profile,
        server_root=unison_root(pair, pair.server),
        keep=start.keep,
        refilling=start.refilling,
    )


def _link_from_here(pair: Pair, start: Start) -> str:
    mark = f"yurt-begin-{os.urandom(8).hex()}"
    *ssh, _command = pair.server.host.argv("")
    return scripts.link(ssh, side(pair, pair.server, start), mark)


def _link_from_hub(pair: Pair, start: Start) -> str:
    mark = f"yurt-begin-{os.urandom(8).hex()}"
    ssh = ["ssh", "-T", "-o", "BatchMode=yes", *KEEP_ALIVE, address_from_hub(pair)]
    return scripts.link(ssh, side(pair, pair.server, start), mark)


def address_from_hub(pair: Pair) -> str:
    """Return the address under which the login host of the hub reaches the spoke."""
    host = pair.spoke.host
    address = pair.spoke.settings.address or (host.destination if isinstance(host, SshHost) else "")
    if not address or address.startswith("-"):
        raise UserError(
            f"homes.yaml has no valid address for '{pair.spoke.name}'",
            code="config-invalid",
            hint=f"set `address` of {shlex.quote(pair.spoke.name)} to what `ssh` on {pair.hub.name} needs",
        )
    return address


def _chunks(process: subprocess.Popen[bytes], what: str) -> Iterator[tuple[str, bytes]]:
    """Yield what a process prints, until it ends. Its children may keep the pipes open longer.

    `what`: what it waits for, which is reported if nothing comes.
    """
    assert process.stdout is not None and process.stderr is not None
    ended, slow_at = False, time.monotonic() + clocks().slow
    with selectors.DefaultSelector() as selector:
        for name, stream in (("out", process.stdout), ("err", process.stderr)):
            selector.register(stream, selectors.EVENT_READ, name)
        while selector.get_map():
            ready = selector.select(0 if ended else 0.2)
            if ended and not ready:
                return
            ended = ended or _has_ended(process)
            if not ready and time.monotonic() > slow_at:
                slow_at = float("inf")
                report_slow(waiting(what))
            for key, _events in ready:
                slow_at = float("inf")
                chunk = os.read(key.fd, 1 << 16)
                if chunk:
                    yield key.data, chunk
                else:
                    selector.unregister(key.fileobj)


def _has_ended(process: subprocess.Popen[bytes]) -> bool:
    """Whether a process has ended; it is not reaped, so that the id of its group stays valid for its children."""
    return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is not None


def _stop(process: subprocess.Popen[bytes]) -> None:
    """Stop Unison and its link, and close its pipes. A Unison that is killed leaves nothing half done."""
    deadline = time.monotonic() + 5
    if not _has_ended(process):
        os.killpg(process.pid, signal.SIGTERM)
        while not _has_ended(process) and time.monotonic() < deadline:
            time.sleep(0.01)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    for pipe in (process.stdout, process.stderr):
        if pipe is not None:
            pipe.close()
