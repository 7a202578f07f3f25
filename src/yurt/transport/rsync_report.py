"""Reads what an rsync process prints: progress, files, totals."""

from __future__ import annotations

from collections.abc import Mapping

from yurt.model import rsync_totals
from yurt.model.disk import number
from yurt.model.files import Progress, unreported

TOTALS = ["--no-human-readable", "--info=progress2,stats2"]
"""Options that make rsync print what `Report` reads: progress and totals."""

EACH = "--out-format=yurt %i %l %n"
"""The option that makes it also print each file. For small files, that takes rsync as long as it does to write them."""

SKIPPING = 'skipping non-regular file "'


def totals(progress: Progress) -> list[str]:
    """Return TOTALS, without progress if that is ignored: rsync prints it for each file."""
    return [TOTALS[0], "--info=stats2"] if progress is unreported else TOTALS


class Total:
    """The total size of a transfer, from the bytes so far and rsync's whole percentages."""

    def __init__(self) -> None:
        self._least, self._most = 0.0, float("inf")

    def after(self, size: int, percent: int) -> int:
        """Return the total after `size` bytes; 0 if it is unknown. Each percentage narrows it down."""
        if percent == 0:
            return 0
        least, most = size * 100 / (percent + 1), size * 100 / percent
        self._least, self._most = max(self._least, least), min(self._most, most)
        if self._least > self._most:  # rsync has found more files
            self._least, self._most = least, most
        return max(size, round(self._most))


class Report:
    """What an rsync process has printed: how many files and bytes it sent, deleted, skipped."""

    def __init__(self) -> None:
        self.files = self.size = self.matched = self.replaced = self.deleted = 0
        self.skipped: list[str] = []
        """Special files, such as sockets, which are not copied."""
        self._total = Total()
        self._each = False

    def read(self, line: str, progress: Progress) -> bool:
        """Read a line; return whether it is one of those that every transfer prints."""
        if line.startswith("yurt "):
            self._note_file(line)
        elif line.startswith(" "):
            size, percent, *_more = [*line.split(), "", ""]
            done, share = number(size), number(percent[:-1])
            if done is None or share is None or share > 100 or not percent.endswith("%"):
                return False
            progress(done, self._total.after(done, share))
        elif not line:
            return False
        elif line.startswith(SKIPPING) and line.endswith('"'):
            self.skipped.append(line[len(SKIPPING) : -1])
        else:
            found = rsync_totals.total(line)
            return found is not None and self._add(*found)
        return True

    def _note_file(self, line: str) -> None:
        """Read a line `yurt CHANGES SIZE PATH`; see %i in rsync's manual for the changes, which may contain spaces."""
        changes, (size, _, path) = line[5:16], line[17:].partition(" ")
        length = number(size)
        if changes[1:2] not in ("f", "L") or length is None:
            return
        sent, self._each = changes[0] in "<>c", True
        self.replaced += sent and not changes.endswith("+++++++++")
        self.files += sent
        self.count(sent=sent, size=length, name=path.partition("/")[0])

    def _add(self, what: str, number: int, kinds: Mapping[str, int]) -> bool:
        """Note a total; return whether it is one."""
        if what == rsync_totals.FILES:
            self.matched = kinds.get("reg", 0) + kinds.get("link", 0)
        elif what == rsync_totals.DELETED:
            self.deleted = number
        elif what == rsync_totals.SIZE:
            self.size = number
        elif what == rsync_totals.TRANSFERRED:
            self.files += 0 if self._each else number
        elif what == rsync_totals.CREATED:
            self.files += 0 if self._each else kinds.get("link", 0)
        else:
            return False
        return True

    def count(self, *, sent: bool, size: int, name: str) -> None:
        """Note a file; `name` is the first part of its path."""
