"""Files of a backups folder: written aside, synced, published by a link that never replaces anything."""

import errno
import os
import shutil
import stat
from typing import List, Optional

from yurt.node.backup import claims
from yurt.node.backup.errors import BackupError, from_os, shown

NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EINVAL)
INSIDE = "version"
"""On file systems without hard links, a version is a folder with this one file: a rename cannot replace it."""


def prepare(folder: str) -> None:
    """Create a backups folder that only this user can read. Refuses one that another user could have made."""
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        found = os.stat(folder)
    except OSError as error:
        raise from_os(error, "create the backups folder %s" % shown(folder)) from None
    if found.st_uid != os.geteuid() or not stat.S_ISDIR(found.st_mode):
        raise BackupError("the backups folder %s belongs to another user; choose another folder" % shown(folder))
    if found.st_mode & 0o077:
        os.chmod(folder, 0o700)


def aside(folder: str, name: str) -> str:
    """Return the path of a temporary file, whose name tells later processes when its writer has died."""
    return os.path.join(folder, ".%s.%s" % (claims.own(), name))


def write(path: str, content: bytes) -> None:
    """Write and sync a new file for this user only. Leaves nothing if it fails."""
    try:
        number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            view = memoryview(content)
            while view:
                view = view[os.write(number, view) :]
            os.fsync(number)
        finally:
            os.close(number)
    except BaseException:
        remove(path)
        raise


def place(temporary: str, target: str) -> None:
    """Rename a written and synced file to its name, which no other file has."""
    os.rename(temporary, target)
    sync_folder(os.path.dirname(target))


def publish(temporary: str, target: str, content: bytes) -> bool:
    """Give a written file its final name, unless that exists. Returns whether the name now has this content.

    The content read back decides: over NFS, a link may succeed although it reports a failure.
    """
    try:
        os.link(temporary, target)
    except OSError as error:
        if error.errno in NO_LINKS:
            _publish_folder(temporary, target)
        elif error.errno not in (errno.EEXIST, errno.ESTALE, errno.EIO, errno.EINTR):
            raise
    sync_folder(os.path.dirname(target))
    return read(target) == content


def _publish_folder(temporary: str, target: str) -> None:
    folder = temporary + ".d"
    os.mkdir(folder, 0o700)
    try:
        os.rename(temporary, os.path.join(folder, INSIDE))
        sync_folder(folder)
        os.rename(folder, target)
    except OSError as error:
        shutil.rmtree(folder, ignore_errors=True)
        if error.errno not in (errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR):
            raise


def read(path: str, size: int = -1) -> Optional[bytes]:
    """Return the content of a published file, or its first bytes; None if it does not exist."""
    try:
        with open(path, "rb") as stream:
            return stream.read(size)
    except IsADirectoryError:
        return read(os.path.join(path, INSIDE), size)
    except FileNotFoundError:
        return None


def remove(path: str) -> None:
    """Remove a file, or the folder that stands for one. It may be gone already."""
    try:
        os.unlink(path)
    except (FileNotFoundError, NotADirectoryError):
        pass
    except (IsADirectoryError, PermissionError):
        shutil.rmtree(path, ignore_errors=True)


def sync_folder(folder: str) -> None:
    """Make new names in a folder permanent, where the file system can."""
    number = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(number)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.EROFS, errno.EBADF):
            raise
    finally:
        os.close(number)


def sweep(folder: str) -> List[str]:
    """Remove the temporary files of processes that have died. Returns the names in the folder that remain."""
    names = []
    for name in os.listdir(folder):
        if name.startswith(".") and claims.dead(name[1:].partition(".")[0]):
            remove(os.path.join(folder, name))
        else:
            names.append(name)
    return names
