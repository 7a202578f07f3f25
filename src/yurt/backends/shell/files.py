"""The files of runs on a host with sh. Each group of methods has its own module, imported on first use."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from yurt.backends import scripts
from yurt.backends.shell import ownership
from yurt.model.files import (
    Brought,
    Contents,
    Ended,
    Gathered,
    Holdings,
    KeepItem,
    KeepSource,
    KeptItem,
    Limits,
    LogPosition,
    LogSink,
    Pick,
    Piece,
    Progress,
    Pull,
    Removed,
    Survey,
)
from yurt.transport.base import Host, refusal

if TYPE_CHECKING:
    from yurt.model.calls import CallResult
    from yurt.model.growth import Growing, Kind, Reader
    from yurt.model.storage import TierPlace, TierUse

READ = '[ -f "$1" ] || exit 44; if [ -n "$2" ]; then cut -b "1-$2" -- "$1"; else cat -- "$1"; fi'


class ShellFiles:
    """The files of one context."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._has_rsync: bool | None = None

    def read(self, folder: str, name: str, *, longest_line: int | None = None) -> bytes | None:
        words = (f"{folder}/{name}", str(longest_line or ""))
        answer = ownership.run(self._host, [folder], READ, *words, timeout=600)
        if answer.code == 44:
            return None
        if answer.code:
            raise refusal(self._host.name, f"cannot read {name}", answer.errors)
        return answer.out

    def tail(
        self,
        logs: Sequence[LogPosition],
        sink: LogSink,
        *,
        lines: int | None = None,
        follow: bool = False,
        seconds: int = 0,
        on_end: Callable[[LogPosition], None] = lambda _log: None,
    ) -> None:
        from yurt.backends.shell import logs as reading

        if len(logs) == 1 and not seconds:
            reading.one(self._host, logs[0], sink, lines=lines, follow=follow)
            if logs[0].over and not logs[0].gone:
                logs[0].done = True
                on_end(logs[0])
        else:
            reading.many(self._host, logs, sink, lines=lines, seconds=seconds, on_end=on_end)

    def collect(
        self, ended: Sequence[Ended], limits: Limits, *, content: bool, measure: bool = False, timeout: float
    ) -> dict[int, dict[str, Piece]]:
        from yurt.backends.shell import collect

        return collect.collect(self._host, ended, limits, content=content, measure=measure, timeout=timeout)

    def grow(self, growing: Sequence[Growing], kinds: Sequence[Kind], reader: Reader) -> None:
        from yurt.backends.shell import growth

        growth.read(self._host, growing, kinds, reader)

    def call_results(self, folders: Sequence[str]) -> list[CallResult]:
        from yurt.backends.shell import collect

        return collect.call_results(self._host, folders)

    def submitted_groups(self, folders: Sequence[str]) -> dict[str, str]:
        answer = ownership.run(self._host, folders, scripts.text("sent.sh"), *folders)
        if answer.code:
            raise refusal(self._host.name, "cannot read the sweeps", answer.errors)
        blocks = (block.partition("\n") for block in f"\n{answer.text}".split("\n= ")[1:])
        return {folder: text for folder, _, text in blocks}

    def list_runs(self, base: str) -> list[str] | None:
        from yurt.backends.shell import listing

        return listing.runs(self._host, base)

    def gather(self, folders: Sequence[str]) -> tuple[dict[str, Gathered | None], int]:
        from yurt.backends.shell import listing

        return listing.gather(self._host, folders)

    def gather_tasks(self, sweeps: Sequence[str]) -> dict[str, dict[int, Gathered]]:
        from yurt.backends.shell import listing

        return listing.gather_tasks(self._host, sweeps)

    def contents(self, folders: Sequence[str]) -> dict[str, Contents]:
        from yurt.backends.shell import pull

        found, self._has_rsync = pull.contents(self._host, folders)
        return found

    def outputs_at_once(
        self, folder: str, target: Path, pick: Pick, progress: Progress
    ) -> tuple[Contents, Brought | None] | None:
        from yurt.backends.shell import pull

        return pull.outputs_at_once(self._host, folder, target, pick, progress)

    def pull(
        self, runs: Sequence[Pull], target: Path, pick: Pick, progress: Progress, *, everything: bool
    ) -> tuple[str, Brought]:
        from yurt.backends.shell import pull

        known = self._has_rsync
        return pull.pull(self._host, runs, target, pick, progress, everything=everything, has_rsync=known)

    def keep_look(
        self, items: Sequence[KeepItem], places: Sequence[TierPlace]
    ) -> tuple[list[KeepSource], list[TierUse]]:
        from yurt.backends.shell import keep

        return keep.look(self._host, items, places)

    def keep(
        self, tier: str, items: Sequence[KeepItem], *, checkpoints: bool, copied: Callable[[int], None]
    ) -> list[KeptItem]:
        from yurt.backends.shell import keep

        return keep.copy(self._host, tier, items, checkpoints=checkpoints, copied=copied)

    def survey(self, folders: Sequence[str]) -> list[Survey]:
        from yurt.backends.shell import removal

        return removal.survey(self._host, folders)

    def holdings(self, base: str) -> Holdings:
        from yurt.backends.shell import removal

        return removal.holdings(self._host, base)

    def remove(self, folders: Sequence[str]) -> Removed:
        from yurt.backends.shell import removal

        return removal.remove(self._host, folders)

    def clear(self, base: str, folders: Sequence[str], home: str = "") -> Removed:
        from yurt.backends.shell import removal

        return removal.clear(self._host, base, folders, home)
