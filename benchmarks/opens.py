"""Counts the opens of files and folders on the shared disks of a lab's cluster by its compute nodes. Needs root.

The kernel asks this process about each open, of any process in any namespace, so none is missed or counted twice.
"""

from __future__ import annotations

import ctypes
import os
import select
import struct
import threading
from collections.abc import Sequence
from typing import Self

CLASS_CONTENT, MARK_ADD, MARK_FILESYSTEM = 0x4, 0x1, 0x100
OPEN_PERM, ON_FOLDERS, ALLOW = 0x10000, 0x40000000, 0x1
HERE = -100
"""AT_FDCWD"""
EVENT, ANSWER = struct.Struct("IBBHQii"), struct.Struct("iI")


class Opens:
    """Counts while it is entered."""

    def __init__(self, hosts: Sequence[int], folders: Sequence[str]) -> None:
        """`hosts`: the first process of each host that counts; `folders`: mount points of the disks on these hosts."""
        self.count = 0
        self._namespaces = {_namespace(pid) for pid in hosts}
        self._disks = [f"/proc/{hosts[0]}/root{folder}" for folder in folders]

    def __enter__(self) -> Self:
        libc = ctypes.CDLL(None, use_errno=True)
        self._file = _checked(libc.fanotify_init(CLASS_CONTENT, os.O_RDONLY | os.O_CLOEXEC))
        self._end, self._ended = os.pipe()
        self._thread = threading.Thread(target=self._read)
        self._thread.start()
        for disk in self._disks:
            mask = ctypes.c_uint64(OPEN_PERM | ON_FOLDERS)
            _checked(libc.fanotify_mark(self._file, MARK_ADD | MARK_FILESYSTEM, mask, HERE, disk.encode()))
        return self

    def __exit__(self, *_error: object) -> None:
        os.close(self._ended)
        self._thread.join()
        for each in (self._file, self._end):  # the kernel allows what is still waiting
            os.close(each)

    def _read(self) -> None:
        while self._end not in select.select([self._file, self._end], [], [])[0]:
            for _length, _version, _reserved, _header, _mask, file, pid in EVENT.iter_unpack(os.read(self._file, 8192)):
                self.count += _namespace(pid) in self._namespaces
                os.write(self._file, ANSWER.pack(file, ALLOW))
                os.close(file)


def _namespace(pid: int) -> str:
    try:
        return os.readlink(f"/proc/{pid}/ns/mnt")
    except OSError:
        return ""


def _checked(code: int) -> int:
    if code < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return code
