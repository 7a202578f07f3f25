"""What is in the index alone is also in files beside it, so that a damaged index loses no run and no cancellation.

The file RUN has a run that is saved and not yet submitted: a new index begins with these runs, which `yurt import`
cannot find. The file of a race, which is on no site, has its candidates, too, and exists until the race is over; these
are submitted again, which is harmless, and their claims are where they were. RUN.cancel exists while a cancellation is
saved and not yet confirmed: an imported run gets it again.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import suppress

import msgspec

from yurt.model.run import Plan, Run, Status
from yurt.model.site_words import MALFORMED
from yurt.private import opener
from yurt.store.races import RACES

FOLDER = "saved"
"""The folder of these files, beside the index."""

CANCEL = ".cancel"


class _Written(msgspec.Struct, frozen=True):
    """The content of a file: the rows of a run as the index has them."""

    run: msgspec.Raw
    status: msgspec.Raw
    plan: msgspec.Raw
    draft: bytes = b""
    candidates: list[_Written] = []


class _Read(msgspec.Struct, frozen=True):
    """The same, as it is read."""

    run: Run
    status: Status
    plan: Plan
    draft: bytes = b""
    candidates: list[_Read] = []


def is_unsent(status: Status) -> bool:
    """Whether a run, or every task of a sweep, may be on no site yet."""
    return status.state in ("waiting", "submitting") and not status.submitted_tasks


def _is_asked(status: Status) -> bool:
    return status.cancel_requested and not status.final


class SavedFiles:
    """The part of the index that keeps these files. A fault of their disk fails no command: the index has the runs."""

    file: str
    _db: sqlite3.Connection

    def _add(self, run: Run, status: Status, plan: Plan | None) -> None:
        raise NotImplementedError

    def _add_draft(self, run: str, draft: bytes) -> None:
        raise NotImplementedError

    def _note_made(self, run: str) -> None:
        raise NotImplementedError

    def _keep_file(self, run: str, before: Status | None, after: Status) -> None:
        """Write or remove the file of a run whose status in the index is new."""
        if is_unsent(after):
            known = (before.state, before.cancel_requested) if before is not None else None
            if after.state == "waiting" and known != (after.state, after.cancel_requested):
                self._write_file(run)
        elif before is not None and is_unsent(before):
            self._remove_file(run)
        asked, earlier = _is_asked(after), before is not None and _is_asked(before)
        if asked and not earlier:
            self._write(f"{run}{CANCEL}", b"")
        elif earlier and not asked:
            self._remove_file(f"{run}{CANCEL}")

    def is_cancellation_saved(self, run: str) -> bool:
        """Whether the user has cancelled a run, according to its file."""
        return os.path.exists(f"{self._saved_folder}/{run}{CANCEL}")

    def _write_file(self, run: str) -> None:
        races = f"SELECT run FROM races UNION {RACES}"  # see _write_race
        for each in self._rows(f"id = ? AND id NOT IN ({races})", run):
            self._write(run, msgspec.json.encode(each))

    def _write_race(self, race: str) -> None:
        """Write the file of a race with the candidates that are not over."""
        members = self._rows("id IN (SELECT run FROM races JOIN runs ON id = run WHERE race = ? AND NOT final)", race)
        for each in self._rows("id = ?", race):
            self._write(race, msgspec.json.encode(msgspec.structs.replace(each, candidates=members)))

    def _rows(self, which: str, run: str) -> list[_Written]:
        query = "SELECT run, status, plan, draft FROM records JOIN plans USING (id) LEFT JOIN drafts USING (id)"
        rows = self._db.execute(f"{query} WHERE {which}", (run,)).fetchall()
        return [
            _Written(msgspec.Raw(run), msgspec.Raw(status), msgspec.Raw(plan), draft or b"")
            for run, status, plan, draft in rows
        ]

    def _write(self, name: str, content: bytes) -> None:
        aside = f"{self._saved_folder}/.{name}.{os.getpid()}"
        with suppress(OSError):
            if not os.path.isdir(self._saved_folder):
                os.mkdir(self._saved_folder, 0o700)
            with open(aside, "wb", opener=opener) as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            os.replace(aside, f"{self._saved_folder}/{name}")
            return
        with suppress(OSError):
            os.unlink(aside)

    def _remove_file(self, name: str) -> None:
        with suppress(OSError):
            os.unlink(f"{self._saved_folder}/{name}")

    def _add_saved(self) -> None:
        """Add the runs that have a file to a new index."""
        found: dict[str, _Read] = {}
        for name in self._saved_files():
            with suppress(OSError, *MALFORMED), open(f"{self._saved_folder}/{name}", "rb") as file:
                each = msgspec.json.decode(file.read(), type=_Read)
                found[each.run.id] = each
        for each in sorted(found.values(), key=lambda each: each.run.created):
            self._add(each.run, each.status, each.plan)
            self._add_draft(each.run.id, each.draft)
            self._note_made(each.run.id)
            if each.run.race:
                self._db.execute("INSERT INTO open_races VALUES (?)", (each.run.id,))
            for member in each.candidates:
                self._add(member.run, self._restored(member), member.plan)
                self._add_draft(member.run.id, member.draft)

    def _restored(self, candidate: _Read) -> Status:
        """Return the status of a candidate that may have been submitted since its file was written."""
        asked = self.is_cancellation_saved(candidate.run.id)
        if candidate.draft:
            return Status(cancel_requested=asked)
        return Status(attempts=1, unsure_since=candidate.run.created, cancel_requested=asked)

    def collect_saved(self) -> None:
        """Remove the files of runs that are submitted or over: a process was killed before it could."""
        for name in self._saved_files():
            query = "SELECT status FROM records WHERE id = ? AND id NOT IN (SELECT race FROM open_races)"
            row = self._db.execute(query, (name,)).fetchone()
            if row is not None and not is_unsent(msgspec.json.decode(row[0], type=Status)):
                self._remove_file(name)

    def _saved_files(self) -> list[str]:
        """Return the runs that have a file."""
        try:
            return [name for name in os.listdir(self._saved_folder) if "." not in name]
        except OSError:  # usually, there is none
            return []

    @property
    def _saved_folder(self) -> str:
        return f"{os.path.dirname(os.path.abspath(self.file))}/{FOLDER}"
