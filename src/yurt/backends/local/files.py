"""The files of runs on this machine: ordinary ones are read without starting a program, others by the scripts."""

from __future__ import annotations

from collections.abc import Sequence

from yurt.backends.local import call_results, collected
from yurt.backends.shell.files import ShellFiles
from yurt.model.calls import CallResult
from yurt.model.files import Ended, Limits, Piece


class LocalFiles(ShellFiles):
    """The files of the runs on this machine."""

    def collect(
        self, ended: Sequence[Ended], limits: Limits, *, content: bool, measure: bool = False, timeout: float
    ) -> dict[int, dict[str, Piece]]:
        """See `Files.collect`. What fails is left to keep.sh: it may be repeated."""
        if not measure and all(collected.is_usual(each.folder) for each in ended):
            try:
                return collected.collected(ended, limits, content=content)
            except OSError:
                pass
        return super().collect(ended, limits, content=content, measure=measure, timeout=timeout)

    def call_results(self, folders: Sequence[str]) -> list[CallResult]:
        if call_results.are_usual(folders):
            return call_results.call_results(folders)
        return super().call_results(folders)  # which says what is wrong, if anything is
