"""A pending job of Slurm: parses the sections `job` and `limits` of live.sh. Pure; unknown lines are left out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from yurt.backends.slurm import limits, wordings
from yurt.backends.slurm.live import read_troubles
from yurt.backends.slurm.probe import minutes, read_config, sections
from yurt.model.waiting import EndedJob, SiteLimit, WaitingJob

WHOLE_LINES = ("AdminComment", "SystemComment", "Comment", "Command", "WorkDir", "StdErr", "StdIn", "StdOut")
"""Fields that have a line of their own and may contain anything."""


def read(mark: str, text: str, job: str) -> WaitingJob | None:
    """Return a pending job according to the output of live.sh; None if the queue does not list it as pending."""
    parts = sections(mark, text)
    records = list(_records(parts.get("job", [])))
    if not records:
        return None
    fields = next((each for each in records if each.get("JobId") == job), records[0])
    found = WaitingJob(
        job=job,
        reason=_text(fields, "Reason"),
        partition=_text(fields, "Partition"),
        account=_text(fields, "Account"),
        qos=_text(fields, "QOS"),
        minutes=minutes(fields.get("TimeLimit", "")),
        requests=dict(_resources(_text(fields, "ReqTRES") or _text(fields, "TRES"))),
        nodes=_text(fields, "ReqNodeList"),
        reservation=_text(fields, "Reservation"),
        licenses=_text(fields, "Licenses"),
        features=_text(fields, "Features"),
        begins_at=_time(fields.get("EligibleTime", "")),
        admin_comment=_text(fields, "AdminComment"),
        system_comment=_text(fields, "SystemComment"),
    )
    partitions = [_fields(line) for line in parts.get("partitions", [])]
    own = [each for each in partitions if each.get("PartitionName") in found.partition.split(",")]
    chosen = list(_of_partitions(found, own, read_config(parts.get("config", []))))
    chosen += limits.relevant(
        found, limits.read(parts.get("limits", []), found.account), [_text(each, "QoS") for each in own]
    )
    return msgspec.structs.replace(found, limits=chosen)


def read_ended(mark: str, text: str) -> EndedJob:
    """Return what the output of ended.sh says about a job that has ended."""
    parts = sections(mark, text)
    node = next(iter(read_troubles(parts.get("node", []))), None)
    comments: dict[str, str] = {}
    for line in parts.get("comments", []):
        name, _bar, value = line.partition("|")
        if value.strip():
            comments.setdefault(name, value.strip().strip("|"))
    memory = [_megabytes(line.strip()) for line in parts.get("memory", [])]
    return EndedJob(
        node=node,
        admin_comment=comments.get("admin", ""),
        system_comment=comments.get("system", ""),
        used_mb=max((each for each in memory if each), default=None),
    )


def _records(lines: Iterable[str]) -> Iterator[dict[str, str]]:
    """Yield the fields of each job in the output of `scontrol show job`."""
    fields: dict[str, str] = {}
    for line in [*lines, "JobId="]:
        name, _equals, value = line.strip().partition("=")
        if name == "JobId" and fields:
            yield fields
            fields = {}
        fields |= {name: value} if name in WHOLE_LINES else _fields(line)


def _fields(line: str) -> dict[str, str]:
    return dict(re.findall(r"(\S+?)=(\S*)", line))


def _text(fields: dict[str, str], name: str) -> str:
    value = fields.get(name, "").strip()
    return "" if value in wordings.NOTHING else value


def _time(text: str) -> float | None:
    return float(text) if re.fullmatch(r"\d+", text) else None


def _resources(text: str) -> Iterator[tuple[str, float]]:
    """Yield the resources in a text such as cpu=2,mem=50M,gres/gpu:a100=1; memory in MB."""
    for part in text.split(","):
        name, _equals, amount = part.rpartition("=")
        value = _megabytes(amount) if name == "mem" else _time(amount)
        if name and value is not None:
            yield name, value


def _megabytes(text: str) -> float | None:
    """Return an amount of memory in MB; without a letter it is in MB already."""
    seen = re.fullmatch(r"(\d+(?:\.\d+)?)([KMGTP]?)", text)
    return None if seen is None else float(seen[1]) * 1024 ** ("KMGTP".index(seen[2] or "M") - 1)


def _of_partitions(
    job: WaitingJob, partitions: Sequence[dict[str, str]], config: dict[str, str]
) -> Iterator[SiteLimit]:
    """Yield the limits of its partitions that a job exceeds."""
    for each in partitions:
        owner = f"partition {each.get('PartitionName', '')}"
        most = minutes(each.get("MaxTime", ""))
        if most is not None and job.minutes is not None and job.minutes > most:
            yield SiteLimit(owner=owner, each="job", resource="time", value=most)
        for name, resource, minimum in (("MaxNodes", "node", False), ("MinNodes", "node", True)):
            value, wanted = _time(each.get(name, "")), job.requests.get(resource)
            if value is not None and wanted is not None and (wanted < value if minimum else wanted > value):
                yield SiteLimit(owner=owner, each="job", resource=resource, value=value, at_least=minimum)
        nodes = max(job.requests.get("node", 1), 1)
        for name, resource in (("MaxCPUsPerNode", "cpu"), ("MaxMemPerNode", "mem")):
            value, wanted = _time(each.get(name, "")) or _time(config.get(name, "")), job.requests.get(resource)
            if value and wanted is not None and wanted / nodes > value:
                yield SiteLimit(owner=owner, each="node", resource=resource, value=value)
