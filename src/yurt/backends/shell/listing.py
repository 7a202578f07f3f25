"""Lists the runs on a host and reads their records, no matter which machine submitted them."""

from __future__ import annotations

from collections.abc import Sequence

from yurt.backends.job import gathered
from yurt.backends.shell import ownership
from yurt.model.files import Gathered
from yurt.transport.base import Host, refusal

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
