"""This machine's side of a sync: its identity beside Unison's archives, and the lock."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import time
from collections.abc import Iterator

from yurt import private
from yurt.errors import RefusedError
from yurt.homes import profile

STAMP = "%Y%m%dT%H%M%SZ"
"""How the time of a sync is written, in UTC."""


def moment() -> tuple[str, str]:
    """Return the time now, and a token: of two syncs in one second, that of the later one sorts after the other.

    The two are the name of a dated folder, and which backup is the newest is read from these names.
    """
    seconds, part = divmod(time.time_ns() // 1000, 1_000_000)
    return time.strftime(STAMP, time.gmtime(seconds)), f"{part:05x}{os.urandom(2).hex()[1:]}"


def identity() -> str:
    """Return a random word that names this machine's archives. It is stored beside them, so it is lost with them."""
    file = profile.folder() / "yurt" / "id"
    private.make_folder(file.parent)
    for _attempt in range(2):
        with contextlib.suppress(FileNotFoundError):
            if re.fullmatch("[0-9a-f]+", found := file.read_text(errors="replace").strip()):
                return found
            file.unlink()  # it is a part of paths
        made = file.with_name(f"id.{os.getpid()}")
        made.unlink(missing_ok=True)
        with open(made, "xb", opener=private.opener) as stream:
            stream.write(f"{os.urandom(6).hex()}\n".encode())
        with contextlib.suppress(FileExistsError):  # another process was faster
            os.link(made, file)
        made.unlink()
    return file.read_text().strip()


@contextlib.contextmanager
def locked() -> Iterator[int]:
    """Hold this machine's lock; yield its descriptor, which Unison inherits and holds until it ends.

    RefusedError if another sync runs on this machine.
    """
    folder = profile.folder() / "yurt"
    private.make_folder(folder)
    descriptor = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        stamp = ""
        with contextlib.suppress(OSError, ValueError, IndexError):
            stamp = (folder / "owner").read_text().split()[4]
        raise busy("this machine", stamp, "") from None
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def busy(place: str, stamp: str, name: str) -> RefusedError:
    """Return the error for a place whose lock another sync holds, since the time `stamp`."""
    import calendar

    details = [f"from {name}"] if name else []
    with contextlib.suppress(ValueError):
        since = calendar.timegm(time.strptime(stamp, STAMP))
        details.append(f"since {time.strftime('%H:%M:%S', time.localtime(since))}")
    about = f" ({', '.join(details)})" if details else ""
    return RefusedError(
        f"another sync of {place} is running{about}; nothing was synced",
        code="home-locked",
        hint="wait for it to finish, then run `yurt home sync` again",
    )
