"""The probe of a compute node: the script that runs one tiny job there, and the parser of its output."""

from __future__ import annotations

from yurt.backends import scripts
from yurt.backends.slurm.probe import sections
from yurt.model.disk import number
from yurt.model.facts import NodeFacts
from yurt.model.sizes import MB

REFUSED, PENDING = 5, 6
"""Exit codes of the script: sbatch rejected the job; it did not start in time."""


def script() -> str:
    return scripts.text("deep_probe.sh", "slurm")


def read(mark: str, text: str, *, now: float) -> NodeFacts:
    parts = sections(mark, text)
    rows = [line.split(" ", 1) for line in parts.get("node", []) if " " in line]
    single = {row[0]: row[1] for row in rows if row[0] not in ("tool", "disk")}
    free, _, disk = next((row[1] for row in rows if row[0] == "disk"), "").partition(" ")
    return NodeFacts(
        node=single.get("node", ""),
        probed_at=now,
        internet=single.get("internet") == "yes",
        ssh=parts.get("ssh", ["no"])[0] == "yes",
        local_disk=disk,
        local_free_mb=None if (kb := number(free)) is None else kb * 1024 // MB,
        tools=dict(row[1].split(" ", 1) for row in rows if row[0] == "tool" and " " in row[1]),
        tmpdir=single.get("tmpdir") == "yes",
        cuda=single.get("cuda", ""),
    )
