"""Writes files so that a reader sees the old or the new content, and removes folders of any shape."""

import json
import os
import shutil
import stat
from typing import Any, Dict


class NodeError(Exception):
    """This cannot be done on this node. The message is one sentence for the user."""


class NotThereError(NodeError):
    """What the user named is not there."""


def write(path: str, text: str) -> None:
    """Replace a file atomically with private text (0600). Raises OSError: then the old content is still there."""
    aside = "%s.%d.aside" % (path, os.getpid())
    descriptor = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="surrogateescape") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(aside, path)
    except BaseException:
        try:
            os.unlink(aside)
        except OSError:
            pass
        raise


def write_json(path: str, value: Dict[str, Any]) -> None:
    """Replace a file atomically with one line of JSON."""
    write(path, json.dumps(value, sort_keys=True) + "\n")


def read_json(path: str) -> Dict[str, Any]:
    """Return the object in a file; empty if the file is absent, unreadable or holds something else."""
    try:
        with open(path, encoding="utf-8") as stream:
            found = json.load(stream)
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def remove(path: str) -> None:
    """Remove a file or a folder, including folders without write permission. What cannot be removed stays."""
    if not os.path.isdir(path) or os.path.islink(path):
        try:
            os.unlink(path)
        except OSError:
            pass
        return
    for top, folders, _files in os.walk(path):
        for name in [".", *folders]:
            each = os.path.join(top, name)
            try:
                mode = os.lstat(each).st_mode
                if stat.S_ISDIR(mode) and mode & 0o700 != 0o700:
                    os.chmod(each, stat.S_IMODE(mode) | 0o700)
            except OSError:
                pass
    shutil.rmtree(path, ignore_errors=True)


def private_folder(path: str) -> str:
    """Create a folder of this user alone (0700) and return its path.

    Raises NodeError if it is there and belongs to another user, or is no folder: another user could have made it.
    """
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        pass
    found = os.lstat(path)
    if not stat.S_ISDIR(found.st_mode):
        raise NodeError("%s is not a folder; remove it" % path)
    if found.st_uid != os.getuid():
        raise NodeError("%s belongs to another user" % path)
    if found.st_mode & 0o077:
        os.chmod(path, 0o700)
    return path
