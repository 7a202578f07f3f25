"""Knows whether a restored workspace is on the disk: a loss of power may take files that only memory had."""

import os
import threading

from yurt.node.files import read_json, write_json

MARK = "unwritten"
BOOT = "/proc/sys/kernel/random/boot_id"


def begin(folder: str) -> None:
    """Note, before a restored folder becomes the workspace, that it may not be on the disk yet."""
    write_json(os.path.join(folder, MARK), {"boot": _boot()})


def settle(folder: str) -> None:
    """Write the disk's memory to the disk, in the background; then remove the note, if there is one."""
    if read_json(os.path.join(folder, MARK)):
        threading.Thread(target=_settle, args=(os.path.join(folder, MARK),), daemon=True).start()


def is_doubtful(folder: str) -> bool:
    """Return whether the machine was started again before the workspace was certainly on the disk."""
    noted = read_json(os.path.join(folder, MARK))
    return bool(noted) and noted.get("boot") != _boot()


def _settle(mark: str) -> None:
    os.sync()
    try:
        os.unlink(mark)
    except OSError:
        pass


def _boot() -> str:
    try:
        with open(BOOT) as stream:
            return stream.read().strip()
    except OSError:
        return ""
