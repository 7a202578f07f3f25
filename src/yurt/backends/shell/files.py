"""The files of runs on a host with sh. Each group of methods has its own module, imported on first use."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from yurt.backends import scripts
from yurt.backends.job import gathered
from yurt.backends.shell import ownership, storage
from yurt.errors import RefusedError, YurtError
from yurt.model.files import (
    NOTHING,
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
    Measures,
    Pick,
    Piece,
    Progress,
    Pull,
    Removed,
    Survey,
    checked,
)
from yurt.model.storage import TierPlace, TierUse
from yurt.transport.base import Host, refusal

if TYPE_CHECKING:
    from yurt.model.calls import CallResult
    from yurt.model.growth import Growing, Kind, Reader
    from yurt.model.storage import TierPlace, TierUse


MOST = 200
"""How many items one request copies."""

SILENCE = 60
"""Seconds without a sign of the script after which the connection counts as lost; it sends one every five seconds."""


def look(host: Host, items: Sequence[KeepItem], places: Sequence[TierPlace]) -> tuple[list[KeepSource], list[TierUse]]:
    """See `Files.keep_look`."""
    mark = f"yurt-{os.urandom(8).hex()}"
    script = scripts.text("measure.sh") + scripts.text("tier_use.sh") + scripts.text("keep_look.sh")
    lines = [f"tier {each.name} {each.path}" for each in places]
    lines += [f"{'run' if each.run else 'place'} {each.source}" for each in items]
    stdin = "".join(f"{line}\n" for line in lines).encode()
    folders = _run_folders(items)
    check = ownership.check(folders) if folders else ""
    answer = host.run(check + script, mark, stdin=stdin, timeout=600)
    if answer.code:
        raise _failure(host, "cannot read the results", answer.code, answer.errors)
    parts = storage.sections(mark, answer.text)
    with host.reading():
        return [_source(parts.get(f"item {at}", ["gone"])) for at in range(len(items))], storage.uses(parts, places)


def copy(
    host: Host, tier: str, items: Sequence[KeepItem], *, checkpoints: bool, copied: Callable[[int], None]
) -> list[KeptItem]:
    """See `Files.keep`."""
    done: list[KeptItem] = []
    script = scripts.text("measure.sh") + scripts.text("keep_copy.sh")
    for first in range(0, len(items), MOST):
        some = items[first : first + MOST]
        words = [word for each in some for word in ("run" if each.run else "place", each.source, each.target)]
        folders = _run_folders(some)
        text = (ownership.check(folders) if folders else "") + script
        lines: list[str] = []
        rest = b""
        with host.stream(text, tier, "yes" if checkpoints else "", *words, silence=SILENCE) as output:
            for chunk in output:
                *whole, rest = (rest + chunk).split(b"\n")
                lines += [line.decode(errors="replace") for line in whole if line != b"tick" and line]
                copied(len(done) + len(lines))
            if output.code:
                errors = output.err.decode(errors="replace").strip()
                raise _failure(host, "cannot copy the results", output.code, errors)
        with host.reading():
            done += [_kept(line) for line in lines[: len(some)]]
    return done


def _failure(host: Host, what: str, code: int, errors: str) -> YurtError:
    if code in ownership.REFUSALS:
        return ownership.refused(host.name, code, errors)
    found = refusal(host.name, what, errors)
    return found if isinstance(found, RefusedError) else RefusedError(found.message, code="site-refused")


def _run_folders(items: Sequence[KeepItem]) -> list[str]:
    return [each.source for each in items if each.run]


def _source(lines: Sequence[str]) -> KeepSource:
    what, *measures = lines
    if what != "there":
        return KeepSource(what=what)
    return KeepSource(what=what, measures=Measures(*map(checked, measures), *([NOTHING] * (3 - len(measures)))))


def _kept(line: str) -> KeptItem:
    word, _, rest = line.partition(" ")
    if word == "failed":
        return KeptItem(failed=rest)
    measures = Measures(*(("" if each == "-" else checked(each)) for each in rest.split())) if rest else Measures()
    return KeptItem(copied=word == "done", measures=measures)


LIST = """\
[ -d "$1/projects" ] || { [ ! -e "${1%/*}" ] || readable "${1%/*}" || exit; exit 44; }
cd "$1/projects" || exit 1
for each in */runs/* */sweeps/*; do [ ! -d "$each" ] || printf '%s\\n' "$each"; done
"""

BYTES = 16 << 20
"""Maximum output of one request."""

BATCH = 2000
"""Maximum number of runs in one request."""


def runs(host: Host, base: str) -> list[str] | None:
    answer = ownership.run(host, [base], LIST, base)
    if answer.code == 44:
        return None
    if answer.code:
        raise refusal(host.name, "cannot list the runs", answer.errors)
    return [f"{base}/projects/{line}" for line in answer.text.splitlines()]


def gather(host: Host, folders: Sequence[str]) -> tuple[dict[str, Gathered | None], int]:
    asked = folders[:BATCH]
    lines = "".join(f"{folder}\n" for folder in asked)
    # Only the folders that contain them are checked: one run folder that is a link must not stop the others.
    above = list(dict.fromkeys(folder.rpartition("/")[0] for folder in asked))
    answer = ownership.run(host, above, gathered.gatherer(), str(BYTES), stdin=lines.encode(), timeout=300)
    if answer.code:
        raise refusal(host.name, "cannot read the runs", answer.errors)
    cut = len(answer.out) >= BYTES
    wanted = frozenset(asked)
    with host.reading():
        came = {folder: each for folder, each in gathered.read(answer.out, cut=cut).items() if folder in wanted}
        if cut and not came:
            return {asked[0]: None}, 1
        asked = asked[: asked.index([*came][-1]) + 1] if cut else asked
    return {folder: came.get(folder, Gathered()) for folder in asked}, len(asked)


def gather_tasks(host: Host, sweeps: Sequence[str]) -> dict[str, dict[int, Gathered]]:
    lines = "".join(f"{folder}\n" for folder in sweeps)
    answer = ownership.run(host, sweeps, gathered.tasks_gatherer(), stdin=lines.encode(), timeout=300)
    if answer.code:
        raise refusal(host.name, "cannot read the sweeps", answer.errors)
    with host.reading():
        there = gathered.read_tasks(answer.text)
    return {folder: there.get(folder, {}) for folder in sweeps}


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

        return runs(self._host, base)

    def gather(self, folders: Sequence[str]) -> tuple[dict[str, Gathered | None], int]:

        return gather(self._host, folders)

    def gather_tasks(self, sweeps: Sequence[str]) -> dict[str, dict[int, Gathered]]:

        return gather_tasks(self._host, sweeps)

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

        return look(self._host, items, places)

    def keep(
        self, tier: str, items: Sequence[KeepItem], *, checkpoints: bool, copied: Callable[[int], None]
    ) -> list[KeptItem]:

        return copy(self._host, tier, items, checkpoints=checkpoints, copied=copied)

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
