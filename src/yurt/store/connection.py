"""The connection to the index, whose errors say what is wrong with the file and what to do about it."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from typing import Any

from yurt.errors import RefusedError, YurtError, here_is_full, use_another

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
    """A connection that raises RefusedError if the disk is full or the file is damaged."""

    file = ""

    def cursor(self, factory: Any = Cursor) -> Any:
        return super().cursor(factory)

    def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
        try:
            return super().execute(sql, parameters)
        except sqlite3.DatabaseError as error:
            raise explained(error, self.file) from None

    def executemany(self, sql: str, parameters: Any, /) -> sqlite3.Cursor:
        try:
            return super().executemany(sql, parameters)
        except sqlite3.DatabaseError as error:
            raise explained(error, self.file) from None


def connect(file: str) -> Connection:
    found = sqlite3.connect(file, timeout=30, isolation_level=None, factory=Connection)
    found.file = file
    return found


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
        return unusable(file, "another yurt process has locked it for too long", hint="run the command again")
    return error


def damaged(file: str, why: str) -> RefusedError:
    hint = f"move it away with `mv {file} {file}.damaged`, then add the runs of each context with `yurt import CONTEXT`"
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
