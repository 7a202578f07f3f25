"""Finds, from a site's facts, requests that it would refuse or never start, before anything is uploaded. Pure."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from yurt.model.facts import Facts, NodeKind, Partition
from yurt.model.resources import leading_number
from yurt.model.run import Resources

FULL_MB = 2
"""A disk with less free space than this counts as full."""


def faults(resources: Resources, facts: Facts, folder: str) -> list[str]:
    """Return why a run can never start, one sentence for each problem, with the nearest valid value."""
    found = []
    partition = facts.partition_of(resources.partition)
    names = [each.name for each in facts.partitions]
    for wanted in (resources.partition or "").split(",") if names else ():  # Slurm chooses among several
        if wanted and wanted not in names:
            found.append(f"partition '{wanted}' not found{_near(wanted, names)}")
    if (
        resources.account
        and facts.accounts
        and resources.account not in (names := [each.name for each in facts.accounts])
    ):
        found.append(f"you have no account '{resources.account}'{_near(resources.account, names)}")
    if resources.qos and facts.qos and resources.qos not in (names := _allowed_qos(resources, facts)):
        found.append(f"you cannot use QOS '{resources.qos}'{_near(resources.qos, names)}")
    if resources.gpu_type and facts.partitions and resources.gpu_type not in facts.gpu_types:
        found.append(f"GPU type '{resources.gpu_type}' not found{_near(resources.gpu_type, facts.gpu_types)}")
    elif partition is not None:
        found += _in_partition(resources, partition, facts)
    if facts.home_refusal and _inside(folder, facts.variables.get("HOME", "")):
        better = next((each.path for each in facts.tiers if each.name == "scratch"), "")
        found.append(
            f"the site does not accept jobs from the home folder ({facts.home_refusal})"
            + (f"; set storage_dir to {better}" if better else "; set storage_dir to another folder")
        )
    full = [each for each in facts.tiers if _inside(folder, each.path) and each.free_mb is not None]
    tier = max(full, key=lambda each: len(each.path), default=None)
    if tier is not None and tier.free_mb is not None and tier.free_mb < FULL_MB:
        found.append(f"{tier.path}, where run folders are stored, is full")
    return found


def _allowed_qos(resources: Resources, facts: Facts) -> list[str]:
    accounts = [each for each in facts.accounts if resources.account in (None, each.name)]
    allowed = sorted({name for each in accounts for name in each.qos})
    return allowed or [each.name for each in facts.qos]


def _in_partition(resources: Resources, partition: Partition, facts: Facts) -> list[str]:
    found = []
    where = f"partition '{partition.name}'"
    if not partition.up:
        found.append(f"{where} is down")
    if resources.minutes and partition.max_minutes and resources.minutes > partition.max_minutes:
        longer = [
            each.name for each in facts.partitions if not each.max_minutes or each.max_minutes >= resources.minutes
        ]
        found.append(
            f"time {_time(resources.minutes)} exceeds the maximum of {where}, {_time(partition.max_minutes)}"
            + (f"; use partition {_either(longer)}" if longer else "")
        )
    if resources.account and partition.accounts and resources.account not in partition.accounts:
        found.append(f"account '{resources.account}' cannot use {where}; use account {_either(partition.accounts)}")
    fits: Sequence[NodeKind] = partition.nodes
    if not fits:
        return found
    least = leading_number(resources.nodes or "")
    there = min(sum(kind.count for kind in fits), partition.max_nodes or sys.maxsize)
    if least and least > there:
        found.append(f"{least} nodes exceed the maximum of {where}, {there}")
    if resources.gpus:
        fits = [kind for kind in fits if kind.gpus and resources.gpu_type in (None, kind.gpu_type)]
        if not fits:
            what = f"GPUs of type '{resources.gpu_type}'" if resources.gpu_type else "GPUs"
            others = [each.name for each in facts.partitions if any(_has(kind, resources) for kind in each.nodes)]
            return [*found, f"{where} has no {what}" + (f"; use partition {_either(others)}" if others else "")]
        most = max(kind.gpus for kind in fits)
        if resources.gpus > most:
            return [*found, f"no node of {where} has {resources.gpus} GPUs; at most {most}"]
        fits = [kind for kind in fits if kind.gpus >= resources.gpus]
    if resources.cpus and resources.cpus > (most := max(kind.cpus for kind in fits)):
        found.append(f"no node of {where} has {resources.cpus} cores{_with_gpus(resources)}; at most {most}")
    if resources.memory_mb and resources.memory_mb > (most := max(kind.memory_mb for kind in fits)):
        much = f"{_memory(resources.memory_mb)} of memory{_with_gpus(resources)}"
        found.append(f"no node of {where} has {much}; at most {_memory(most)}")
    return found


def _has(kind: NodeKind, resources: Resources) -> bool:
    return kind.gpus > 0 and resources.gpu_type in (None, kind.gpu_type)


def _with_gpus(resources: Resources) -> str:
    return " and the requested GPUs" if resources.gpus else ""


def _near(word: str, names: Sequence[str]) -> str:
    from difflib import get_close_matches

    near = get_close_matches(word, names, n=1, cutoff=0.5)
    if near:
        return f"; did you mean '{near[0]}'?"
    return f"; use {_either(names)}" if names else ""


def _either(names: Sequence[str]) -> str:
    return " or ".join((", ".join(names[:-1]), names[-1])) if len(names) > 1 else "".join(names)


def _inside(folder: str, parent: str) -> bool:
    return bool(parent) and (folder == parent or folder.startswith(parent.rstrip("/") + "/"))


def _time(minutes: int) -> str:
    days, rest = divmod(minutes, 1440)
    hours, left = divmod(rest, 60)
    return "".join(f"{count}{unit}" for count, unit in ((days, "d"), (hours, "h"), (left, "m")) if count)


def _memory(megabytes: int) -> str:
    return f"{megabytes // 1024}G" if megabytes >= 1024 and megabytes % 1024 == 0 else f"{megabytes}M"
