"""The status of a dev node: dev.json in the run folder, written when it changes, for readers elsewhere."""

import errno
import json
import os
import threading
import time
from typing import Any, Callable, Dict, Optional

from yurt.node.files import write_json

FILE = "dev.json"
PAUSE = 2.0
"""Seconds between two writes, unless a field changes for which others wait."""

URGENT = ("phase", "socket", "failure", "fork", "backup")


class Status:
    """The fields of dev.json. Any thread may set them; one thread writes them, as the shared disk may hang."""

    def __init__(self, run_folder: str, **fields: Any) -> None:
        self._path = os.path.join(run_folder, FILE)
        texts = ("note", "workspace", "folder", "socket", "failure", "fork", "aside")
        values = ("end", "progress", "backup", "next", "idle_since")
        self._fields: Dict[str, Any] = {"phase": "starting", "version": 0, "warnings": []}
        self._fields.update(dict.fromkeys(texts, ""), **dict.fromkeys(values))
        self._fields.update(fields)
        self._changed = threading.Condition()
        self._writing = threading.Lock()
        self._dirty, self._urgent = True, False
        threading.Thread(target=self._write_on_change, daemon=True).start()

    def set(self, **fields: Any) -> None:
        """Change fields. Equal values cause no write."""
        with self._changed:
            changed = [name for name, value in fields.items() if self._fields.get(name) != value]
            if changed:
                self._fields.update(fields)
                self._dirty = True
                self._urgent = self._urgent or any(name in URGENT for name in changed)
                self._changed.notify()

    def get(self, name: str) -> Any:
        return self._fields[name]

    def fields(self) -> Dict[str, Any]:
        """Return a copy of all fields."""
        with self._changed:
            return dict(self._fields, written=time.time())

    def write(self) -> None:
        """Write the file now. A disk that is full or gone is no reason to stop: the next change tries again.

        On a full disk, the present file is overwritten: that the disk is full is what its readers must learn.
        """
        with self._changed:
            self._dirty = self._urgent = False
        try:
            with self._writing:
                write_json(self._path, self.fields())
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                overwrite(self._path, self.fields())
            with self._changed:
                self._dirty = True

    def progress(self) -> Callable[[str, int, int], None]:
        """Return the callback that shows how far a backup or a restore is."""
        return lambda phase, done, total: self.set(progress={"phase": phase, "done": done, "total": total})

    def _write_on_change(self) -> None:
        while True:
            with self._changed:
                while not self._dirty:
                    self._changed.wait()
            self.write()
            with self._changed:
                self._changed.wait_for(lambda: self._urgent, PAUSE)


def overwrite(path: str, fields: Dict[str, Any]) -> bool:
    """Overwrite a file with JSON in its own blocks, padded with spaces; return whether it was done.

    It is one small write. A reader that meets it halfway sees no valid JSON, as before the first write.
    """
    data = (json.dumps(fields, sort_keys=True) + "\n").encode()
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_NOFOLLOW)
        try:
            found = os.fstat(descriptor)
            if len(data) > max(found.st_size, found.st_blocks * 512):
                return False
            data = data.ljust(found.st_size)
            return os.pwrite(descriptor, data, 0) == len(data)
        finally:
            os.close(descriptor)
    except OSError:
        return False


def backup_of(version: Any) -> Optional[Dict[str, Any]]:
    """Return what dev.json says of a version."""
    if version is None:
        return None
    names = ("number", "time", "reason", "size", "new_size", "seconds", "note")
    return {name: getattr(version, name) for name in names}
