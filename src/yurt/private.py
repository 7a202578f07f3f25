"""Creates files and folders that only their owner can access, whatever the umask is, and reads them back. Ignores
programs in a folder that only happens to be the current one.

The rule: each file of yurt is created with an explicit mode. yurt never changes the umask of its own process, which may
be the user's program, and in which the user's commands and fetched files need the user's umask.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False  # importing typing or pathlib takes longer than what `yurt ps` does here
if TYPE_CHECKING:
    from pathlib import Path

_OTHERS_WRITE = 0o022
"""With an access control list, the bit of the group is the mask: without it, no other user can write either."""


def opener(path: str, flags: int) -> int:
    """Create a file with mode 0600: `open(path, "wb", opener=opener)`."""
    return os.open(path, flags | os.O_CLOEXEC, 0o600)


def make_folder(folder: Path) -> None:
    """Create a folder and its missing parents with mode 0700."""
    absent = [each for each in (folder, *folder.parents) if not each.exists()]
    for each in reversed(absent):
        each.mkdir(mode=0o700, exist_ok=True)


def write(file: Path, content: bytes) -> None:
    """Write a file, not atomically; a new one gets mode 0600."""
    with open(file, "wb", opener=opener) as stream:
        stream.write(content)


def read(file: str) -> bytes:
    """Read a file that decides what yurt does; PermissionError if another user can change the file or its folder."""
    descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(descriptor, "rb", buffering=0) as stream:
        if not (is_own(os.fstat(descriptor)) and is_own(os.stat(os.path.dirname(file)))):
            raise PermissionError(file)
        return stream.read()


def is_own(about: os.stat_result) -> bool:
    """Whether a file or folder belongs to the user of this process, and no other user can write to it."""
    return about.st_uid == os.geteuid() and not about.st_mode & _OTHERS_WRITE


def replace(file: str, content: bytes) -> None:
    """Replace a file that `read` reads, atomically; OSError if it cannot be, or another user can change its folder."""
    if not is_own(os.stat(os.path.dirname(file))):
        raise PermissionError(file)
    temporary = f"{file}.{os.getpid()}"
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with open(descriptor, "wb") as stream:
        stream.write(content)
    os.replace(temporary, file)


def ignore_relative_path() -> None:
    """Take relative folders out of PATH: `bin`, or an empty entry, is a folder of whatever project the user is in, and
    its author would choose the `git` and the `ssh` that yurt starts there."""
    given = os.environ.get("PATH")
    if given is None:
        return
    if kept := [each for each in given.split(os.pathsep) if os.path.isabs(each)]:
        os.environ["PATH"] = os.pathsep.join(kept)
    else:  # without PATH, the usual folders apply; an empty one is the current folder
        del os.environ["PATH"]
