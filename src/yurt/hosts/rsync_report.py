"""Reads what an rsync process prints: progress, files, totals."""

from __future__ import annotations

import re

from yurt.model.files import Progress

TOTALS = ["--no-human-readable", "--info=progress2,stats2"]
"""Options that make rsync print what `Report` reads: progress and totals."""

EACH = [*TOTALS, "--out-format=yurt %i %l %n"]
"""Options that make it also print each file."""


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
            if not (size.isdigit() and percent.endswith("%")):
                return False
            progress(int(size), self._total.after(int(size), int(percent[:-1])))
        elif not line:
            return False
        elif line.startswith("Number of files: "):
            self.matched = sum(int(count) for count in re.findall(r"(?:reg|link): (\d+)", line))
        elif found := re.match(r"Number of (deleted|created|regular) files(?: transferred)?: (\d+)(.*)", line):
            self._add(found[1], int(found[2]), found[3])
        elif found := re.match(r'skipping non-regular file "(.*)"$', line):
            self.skipped.append(found[1])
        elif found := re.match(r"Total transferred file size: (\d+)", line):
            self.size = int(found[1])
        else:
            return False
        return True

    def _note_file(self, line: str) -> None:
        """Read a line `yurt CHANGES SIZE PATH`; see %i in rsync's manual for the changes, which may contain spaces."""
        changes, (size, _, path) = line[5:16], line[17:].partition(" ")
        if changes[1:2] not in ("f", "L") or not size.isdigit():
            return
        sent, self._each = changes[0] in "<>c", True
        self.replaced += sent and not changes.endswith("+++++++++")
        self.files += sent
        self.count(sent=sent, size=int(size), name=path.partition("/")[0])

    def _add(self, what: str, number: int, kinds: str) -> None:
        """Note a total."""
        if what == "deleted":
            self.deleted = number
        elif what == "regular" and not self._each:
            self.files += number
        elif what == "created" and not self._each:
            self.files += sum(int(each) for each in re.findall(r"link: (\d+)", kinds))

    def count(self, *, sent: bool, size: int, name: str) -> None:
        """Note a file; `name` is the first part of its path."""
