"""Limits of Slurm: the names of reasons, and the output of `scontrol show assoc_mgr`. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import msgspec

from yurt.model.waiting import SiteLimit, WaitingJob

_NAME = re.compile(
    r"(?P<of>QOS|Assoc)?(?P<kind>Grp|Max|Min)"
    r"(?P<what>C[Pp][Uu]|SubmitJobs?|Jobs?|Mem(?:ory)?|Node|Wall(?:Duration)?|Unknown|Energy|GRES|License|BB|Billing)"
    r"(?P<minutes>(?:Run)?Min(?:ute)?s)?(?:Per(?P<each>Job|Node|User|Account))?(?:Limit|NotSatisfied)?"
)

_RESOURCES = {
    "cpu": "cpu",
    "mem": "mem",
    "memory": "mem",
    "node": "node",
    "gres": "gres/",
    "license": "license/",
    "bb": "bb/",
    "energy": "energy",
    "billing": "billing",
    "unknown": "",
    "job": "jobs",
    "jobs": "jobs",
    "submitjob": "submitted",
    "submitjobs": "submitted",
    "wall": "time",
    "wallduration": "time",
}

_WORDS = {
    "cpu": "CPUs",
    "mem": "memory",
    "node": "nodes",
    "gres/": "GPUs and other devices",
    "license/": "licenses",
    "bb/": "burst buffers",
    "energy": "energy",
    "billing": "billing units",
    "": "a resource",
    "jobs": "running jobs",
    "submitted": "submitted jobs",
    "time": "time",
}

_MINUTES = {"cpu": "CPU minutes", "mem": "memory minutes", "node": "node minutes", "gres/": "GPU minutes"}

_FIELDS = {
    "GrpJobs": ("", "jobs", ""),
    "GrpSubmitJobs": ("", "submitted", ""),
    "GrpWall": ("", "time", "all"),
    "GrpTRES": ("", "*", ""),
    "GrpTRESMins": ("", "*", "all"),
    "GrpTRESRunMins": ("", "*", "running"),
    "MaxJobs": ("user", "jobs", ""),
    "MaxSubmitJobs": ("user", "submitted", ""),
    "MaxWallPJ": ("job", "time", ""),
    "MaxTRESPJ": ("job", "*", ""),
    "MaxTRESPN": ("node", "*", ""),
    "MaxTRESMinsPJ": ("job", "*", "all"),
    "MinTRESPJ": ("job", "*", ""),
    "MaxJobsPA": ("account", "jobs", ""),
    "MaxSubmitJobsPA": ("account", "submitted", ""),
    "MaxTRESPA": ("account", "*", ""),
    "MaxTRESRunMinsPA": ("account", "*", "running"),
    "MaxJobsPU": ("user", "jobs", ""),
    "MaxSubmitJobsPU": ("user", "submitted", ""),
    "MaxTRESPU": ("user", "*", ""),
    "MaxTRESRunMinsPU": ("user", "*", "running"),
}
"""The limits in the output: what each applies to, what it limits (* is any resource), and whether it counts minutes."""


class LimitName(msgspec.Struct, frozen=True, kw_only=True):
    """What the name of a reason says about the limit."""

    association: bool
    """Whether an association (of a user or an account) has the limit, not a QOS."""
    each: str
    resource: str
    """As in `SiteLimit`; a name that ends with / stands for any that begins with it, an empty one for any."""
    minutes: str
    at_least: bool


def named(reason: str) -> LimitName | None:
    """Return what a reason says about a limit, such as QOSMaxCpuPerUserLimit; None if it is about something else."""
    found = _NAME.fullmatch(reason)
    if found is None:
        return None
    association, grouped = found["of"] == "Assoc", found["kind"] == "Grp"
    resource, each = _RESOURCES[found["what"].lower()], (found["each"] or "").lower()
    if not grouped and not each:
        each = "user" if resource in ("jobs", "submitted") else "job"
    minutes = found["minutes"] or ""
    counted = "running" if minutes.startswith("Run") else "all" if minutes or (grouped and resource == "time") else ""
    return LimitName(
        association=association, each=each, resource=resource, minutes=counted, at_least=found["kind"] == "Min"
    )


def words(reason: str) -> str:
    """Return a reason that names a limit as a sentence; empty if it is about something else."""
    limit = named(reason)
    if limit is None:
        return ""
    what = _WORDS[limit.resource] if not limit.minutes else _MINUTES.get(limit.resource, _WORDS[limit.resource])
    whose = "your account" if limit.association else "its QOS"
    if limit.at_least:
        return f"it requests less than {whose} requires: {what}"
    if limit.each in ("job", "node"):
        more = f"more {what}" if limit.resource else "more of a resource"
        return f"it requests {more} than {whose} allows{' on a node' if limit.each == 'node' else ''}"
    reached = {
        "user": f"you have reached a limit of {whose}",
        "account": "your account has reached a limit of its QOS",
        "": "your account has reached its limit"
        if limit.association
        else "the QOS has reached its limit for all users combined",
    }
    return f"{reached[limit.each]}: {what}"


def relevant(job: WaitingJob, limits: Iterable[SiteLimit], partition_qos: Iterable[str]) -> list[SiteLimit]:
    """Return the limits that the reason of a job is about: those that it exceeds, else all that it may mean."""
    limit = named(job.reason)
    if limit is None:
        return []
    owners = {f"QOS {each}" for each in (job.qos, *partition_qos)}
    found = [
        each
        for each in limits
        if (each.owner in owners) != limit.association
        and (limit.association or each.owner in owners)
        and each.each == limit.each
        and each.minutes == limit.minutes
        and each.at_least == limit.at_least
        and (each.resource == limit.resource or (limit.resource[-1:] in ("/", "") and _begins(each, limit.resource)))
    ]
    return [each for each in found if exceeds(job, each)] or found


def _begins(limit: SiteLimit, prefix: str) -> bool:
    return limit.resource.startswith(prefix) and limit.resource not in ("jobs", "submitted", "time")


def exceeds(job: WaitingJob, limit: SiteLimit) -> bool:
    """Return whether a job cannot start with this limit, as far as the numbers tell."""
    wanted = requested(job, limit)
    if limit.at_least:
        return wanted is not None and wanted < limit.value
    return (limit.used or 0.0) + (wanted or 0.0) > limit.value


def requested(job: WaitingJob, limit: SiteLimit) -> float | None:
    """Return what a job adds to what a limit counts; None if that is unknown."""
    if limit.resource in ("jobs", "submitted"):
        return 1 if limit.resource == "jobs" else 0
    amount = job.minutes if limit.resource == "time" else job.requests.get(limit.resource)
    if amount is None or (limit.each == "node" and job.requests.get("node", 1) != 1):
        return None
    if limit.minutes and limit.resource != "time":
        return amount * job.minutes if job.minutes is not None else None
    return amount


def read(lines: Iterable[str], account: str) -> list[SiteLimit]:
    """Return the limits in the output of `scontrol show assoc_mgr`; values that are not set are left out.

    `account`: of the limits for each account, those of this one. Of the limits for each user, live.sh prints your own.
    """
    found: list[SiteLimit] = []
    owner, accounts, other = "", False, False
    for line in lines:
        if re.match(r"QOS=|ClusterName=", line) or line.endswith(" User Limits"):
            accounts = other = False
        elif line.endswith(" Account Limits"):
            accounts = True
        elif accounts and re.fullmatch(r"\s+[^\s=]+", line):
            other = line.strip() != account
        if start := re.match(r"QOS=([^( ]+)", line):
            owner = f"QOS {start[1]}"
        elif start := re.match(r"ClusterName=\S* Account=(\S+) UserName=([^( ]*)", line):
            owner = f"your association with account {start[1]}" if start[2] else f"account {start[1]}"
        elif owner and not other:
            found += _limits(owner, line)
    return found


def _limits(owner: str, line: str) -> Iterator[SiteLimit]:
    for name, text in re.findall(r"(\w+)=(\S+)", line):
        if name not in _FIELDS:
            continue
        each, resource, minutes = _FIELDS[name]
        parts = (
            [(resource, text)] if resource != "*" else [tuple(part.rpartition("=")[::2]) for part in text.split(",")]
        )
        for what, amount in parts:
            seen = re.fullmatch(r"(\d+(?:\.\d+)?)([KMGTP]?)(?:\((\d+(?:\.\d+)?)\))?", amount)
            if seen is None or not what:
                continue
            value = float(seen[1]) * _factor(what, seen[2])
            used = float(seen[3]) if seen[3] is not None else None
            yield SiteLimit(
                owner=owner,
                each=each,
                resource=what,
                minutes=minutes,
                at_least=name.startswith("Min"),
                value=value,
                used=used / 60 if used is not None and name == "GrpWall" else used,
            )


def _factor(resource: str, letter: str) -> float:
    """Return the factor of a unit: memory counts in MB, everything else as it is."""
    if not letter:
        return 1
    power = "KMGTP".index(letter) + (-1 if resource == "mem" else 1)
    return float(1024.0**power)
