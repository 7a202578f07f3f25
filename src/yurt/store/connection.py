"""The connection to the index, whose errors say what is wrong with the file and what to do about it."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import time
from collections.abc import Callable
from typing import Any

from yurt.clocks import clocks
from yurt.errors import RefusedError, YurtError, here_is_full, use_another
from yurt.model.progress import report_slow

INDEX_CODES = ("disk-full", "quota-full", "index-unavailable")
"""Codes of the errors that the index raises."""

FREE = "free some space, then run the command again"


class Cursor(sqlite3.Cursor):
    """Rows of a query. A damaged page may be found only here."""

    connection: Connection

    def __next__(self) -> Any:
        try:
            return super().__next__()
        except sqlite3.DatabaseError as error:
            raise explained(error, self.connection.file) from None

    def fetchone(self) -> Any:
        try:
            return super().fetchone()
        except sqlite3.DatabaseError as error:
            raise explained(error, self.connection.file) from None

    def fetchall(self) -> list[Any]:
        try:
            return super().fetchall()
        except sqlite3.DatabaseError as error:
            raise explained(error, self.connection.file) from None


class Connection(sqlite3.Connection):
    """A connection that raises RefusedError if the disk is full, or the file is damaged or locked for long."""

    file = ""

    def cursor(self, factory: Any = Cursor) -> Any:
        return super().cursor(factory)

    def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
        return self.patiently(lambda: super(Connection, self).execute(sql, parameters))

    def executemany(self, sql: str, parameters: Any, /) -> sqlite3.Cursor:
        return self.patiently(lambda: super(Connection, self).executemany(sql, parameters))

    def patiently(self, step: Callable[[], sqlite3.Cursor]) -> sqlite3.Cursor:
        """Take a step; again if another program has locked the file, which is reported once."""
        began, reported = time.monotonic(), False
        while True:
            try:
                return step()  # waits itself, until it is time to report
            except sqlite3.DatabaseError as error:
                waited = time.monotonic() - began
                if not is_locked(error) or waited > clocks().locked:
                    raise explained(error, self.file) from None
                if waited > clocks().slow and not reported:
                    report_slow(f"{self.file} is locked by another program; waiting for up to {clocks().locked:.0f} s")
                    reported = True
            time.sleep(0.01)  # in some cases SQLite does not wait


def connect(file: str) -> Connection:
    found = sqlite3.connect(file, timeout=clocks().slow, isolation_level=None, factory=Connection)
    found.file = file
    return found


def is_locked(error: sqlite3.Error) -> bool:
    """Whether the same statement may succeed later."""
    code = getattr(error, "sqlite_errorcode", 0)
    return code & 0xFF == sqlite3.SQLITE_BUSY and code != sqlite3.SQLITE_BUSY_SNAPSHOT


def check(file: str) -> None:
    """Read the whole index. RefusedError if it is damaged or cannot be read."""
    try:
        with contextlib.closing(connect(file)) as opened:
            (found,) = opened.execute("PRAGMA quick_check(1)").fetchone()
    except sqlite3.Error as error:
        raise explained(error, file) from None
    if found != "ok":
        raise damaged(file, found)


def explained(error: sqlite3.Error, file: str) -> YurtError | sqlite3.Error:
    """Return the error for the user; the same error if it is a bug of yurt."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code == sqlite3.SQLITE_FULL or (code in (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN) and is_full(file)):
        return here_is_full(f"the run index {file}", hint=FREE)
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return damaged(file, str(error))
    if code in (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM):
        return unusable(file, str(error), hint=use_another("YURT_DATA_HOME"))
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        hint = f"end that program, then run the command again; `fuser -v {file}` lists the programs that use it"
        return unusable(file, f"another program has locked it for {clocks().locked:.0f} s", hint=hint)
    return error


def damaged(file: str, why: str) -> RefusedError:
    hint = (
        f"move it away with `mv {file} {file}.damaged`, then add the runs of each context with `yurt import CONTEXT`;"
        " runs that are saved and not yet submitted are kept in files, and added by themselves"
    )
    return RefusedError(f"the run index {file} is damaged: {why}", code="index-unavailable", hint=hint)


def unusable(file: str, why: str, *, hint: str = "") -> RefusedError:
    return RefusedError(f"cannot open the run index {file}: {why}", code="index-unavailable", hint=hint)


def is_full(file: str) -> bool:
    """Whether the disk of a file has less room than SQLite needs for its next page."""
    try:
        found = os.statvfs(os.path.dirname(file) or ".")
    except OSError:
        return False
    return found.f_bavail * found.f_frsize < 1 << 20
