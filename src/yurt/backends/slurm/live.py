"""The state of a Slurm cluster now: the parser of live.sh. Pure; unknown words stay unknown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from yurt.backends import scripts
from yurt.backends.slurm import wordings
from yurt.backends.slurm.access import Person, reservation_is_open, why_not
from yurt.backends.slurm.probe import read_config, read_partition, sections
from yurt.model.facts import Account
from yurt.model.live import (
    FREE_STATES,
    Controller,
    FairShare,
    Live,
    LiveJob,
    LiveNode,
    LiveNodes,
    LivePartition,
    NodeTrouble,
    Queue,
    Reservation,
    gpu_counts,
)
from yurt.model.site_words import brief

MARKS = {"*": "NOT_RESPONDING", "~": "POWERED_DOWN", "%": "POWERING_DOWN", "$": "MAINT"}
"""What a character after a word means; others, such as # for powering up, do not change what the node can do."""

OTHER_MARKS = "#!@^-"

STATES = (
    ("down", {"DOWN", "ERROR", "FAIL", "FAILING", "NOT_RESPONDING", "NO_RESPOND"}),
    ("drained", {"DRAIN", "DRAINED", "DRAINING", "DRNG"}),
    ("maintenance", {"MAINT", "MAINTENANCE"}),
    ("reserved", {"RESERVED", "RESV"}),
    ("powered down", {"POWERED_DOWN", "POWERING_DOWN", "POWER_DOWN"}),
    ("mixed", {"MIXED", "MIX"}),
    ("allocated", {"ALLOCATED", "ALLOC"}),
    ("completing", {"COMPLETING", "COMP"}),
    ("idle", {"IDLE"}),
)
"""The first state with one of the node's words counts."""


def state_of(text: str) -> str:
    """Return the state of a node from words such as IDLE*, MIXED+DRAIN or IDLE+CLOUD+POWERED_DOWN."""
    words = {word.rstrip("".join(MARKS) + OTHER_MARKS) for word in text.upper().split("+")}
    words |= {meaning for mark, meaning in MARKS.items() if mark in text}
    return next((state for state, names in STATES if names & words), "unknown")


FACTORS = ("age", "fairshare", "job size", "partition", "qos")
"""The parts of a priority, in the order of live.sh."""


class Group:
    """Similar nodes: the same partitions, state and GPUs."""

    def __init__(self, line: str) -> None:
        """ValueError if the line has another form."""
        count, cpus, taken, memory, held, partitions, state, gres, used = line.split("|")[:9]
        self.count, self.cpus, self.memory = int(count), int(cpus), int(memory)
        self.partitions, self.state = partitions.split(","), state_of(state)
        can_start = self.state in FREE_STATES
        self.free_cpus = max(0, self.cpus - int(taken)) if can_start else 0
        self.free_memory = max(0, self.memory - int(held)) if can_start else 0
        busy = read_gpus(used)
        self.gpus = []
        for kind, total in (own := read_gpus(gres)).items():
            in_use = busy.get(kind, 0) + (busy.get("", 0) if kind and len(own) == 1 else 0)
            self.gpus.append((kind, total * self.count, max(0, total - in_use) * self.count if can_start else 0))


def script() -> str:
    return scripts.text("fields.sh", "slurm") + scripts.text("live.sh", "slurm")


def read(mark: str, text: str, accounts: Sequence[Account], *, now: float) -> Live:
    """Return the state in the output of live.sh. Lines of an unknown form are left out."""
    parts = sections(mark, text)
    host, user = (*parts.get("who", []), "", "")[:2]
    controllers = read_controllers(parts.get("ping", []))
    if not parts.get("partitions"):
        answers = [*parts.get("errors", []), *parts.get("ping", []), "no answer"]
        return Live(at=now, host=host, silent=answers[0], controllers=controllers)
    for what, command in (("nodes", "scontrol show node"), ("queue", "squeue")):
        if code := next((line[7:] for line in parts.get(what, []) if line.startswith("failed ")), ""):
            how = "does not respond" if code in ("124", "137") else "failed"  # the codes of `timeout`
            return Live(at=now, host=host, silent=f"`{command}` {how}", controllers=controllers)
    person = Person(user, " ".join(parts.get("groups", [])).split(), accounts, host)
    groups = list(_groups(parts.get("nodes", [])))
    queue, counts = read_queue(parts.get("queue", []), read_factors(parts.get("priority", [])))
    return Live(
        at=now,
        host=host,
        controllers=controllers,
        nodes=_nodes(groups),
        partitions=[
            _partition(line, groups, counts, person) for line in parts["partitions"] if "PartitionName=" in line
        ],
        troubles=list(read_troubles(parts.get("nodes", []))),
        queue=queue,
        fair_share=list(read_fair_share(parts.get("fair-share", []))),
        accounting_silent=_has_accounting(parts.get("config", [])) and "silent" in parts.get("fair-share", []),
        reservations=[
            read_reservation(line, person) for line in parts.get("reservations", []) if "ReservationName=" in line
        ],
    )


def read_controllers(lines: Iterable[str]) -> list[Controller]:
    """Return the controllers in the output of `scontrol ping`."""
    found = []
    for line in lines:
        seen = re.search(r"Slurmctld\(([^)]*)\) at (\S+) (?:is|are) (\S+)", line)
        if seen is None:
            continue
        roles, hosts, states = (part.split("/") for part in seen.groups())
        for role, host, state in zip(roles, hosts, states, strict=False):
            found.append(Controller(host=host, role=role, up=state.upper() == "UP"))
    return found


def _groups(lines: Iterable[str]) -> Iterable[Group]:
    for line in lines:
        try:
            if line.startswith("group|"):
                yield Group(line.removeprefix("group|"))
        except ValueError:
            continue


def read_gpus(gres: str) -> dict[str, int]:
    """Return the number of GPUs by type in a node's gres, such as gpu:a100:2,gpu:h100:4,tmp:1G."""
    found: dict[str, int] = {}
    for one in re.sub(r"\([^)]*\)", "", gres).split(","):
        words = one.split(":")
        if words[0] == "gpu" and len(words) > 1 and words[-1].isdigit():
            kind = words[1] if len(words) > 2 else ""
            found[kind] = found.get(kind, 0) + int(words[-1])
    return found


def nodes_script() -> str:
    return scripts.text("fields.sh", "slurm") + scripts.text("nodes.sh", "slurm")


def read_nodes(text: str) -> list[LiveNode]:
    """Return the nodes in the output of nodes.sh. Lines of an unknown form are left out."""
    found = []
    for line in text.splitlines():
        words = line.split("|")
        if words[0] != "node" or len(words) < 11:
            continue
        _node, name, partitions, state, cpus, taken, memory, held, gres, used, load = words[:11]
        try:
            group = Group("|".join(("1", cpus, taken, memory, held, partitions, state, gres, used)))
        except ValueError:
            continue
        found.append(
            LiveNode(
                name=name,
                partitions=group.partitions,
                state=group.state,
                cpus=group.cpus,
                free_cpus=group.free_cpus,
                memory_mb=group.memory,
                free_memory_mb=group.free_memory,
                gpus=gpu_counts(group.gpus),
                load=_decimal(load),
            )
        )
    return found


def _nodes(groups: Sequence[Group]) -> LiveNodes:
    states: dict[str, int] = {}
    for each in groups:
        states[each.state] = states.get(each.state, 0) + each.count
    return LiveNodes(
        states=states,
        cpus=sum(each.cpus for each in groups),
        free_cpus=sum(each.free_cpus for each in groups),
        memory_mb=sum(each.memory for each in groups),
        free_memory_mb=sum(each.free_memory for each in groups),
        gpus=gpu_counts(gpu for each in groups for gpu in each.gpus),
    )


def _partition(line: str, groups: Sequence[Group], counts: dict[tuple[str, str], int], person: Person) -> LivePartition:
    known = read_partition(line, {})
    fields = dict(re.findall(r"(\w+)=(\S+)", line))
    reason = why_not(fields, person)
    return LivePartition(
        name=known.name,
        default=known.default,
        state=fields.get("State", "UP").lower(),
        usable=not reason,
        why_not=reason,
        max_minutes=known.max_minutes,
        default_minutes=known.default_minutes,
        max_nodes=known.max_nodes,
        preempt=known.preempt,
        grace_seconds=known.grace_seconds,
        nodes=_nodes([each for each in groups if known.name in each.partitions]),
        running=counts.get(("RUNNING", known.name), 0),
        pending=counts.get(("PENDING", known.name), 0),
    )


def read_troubles(lines: Iterable[str]) -> Iterable[NodeTrouble]:
    """Yield the nodes that are down or drained; a reason ends with [USER@TIME]."""
    for line in lines:
        if not line.startswith("bad|") or line.count("|") < 4:
            continue
        _bad, node, state, partitions, text = line.split("|", 4)
        reason, since = text, None
        if seen := re.fullmatch(r"(.*?)\s*\[[^\]@]*@(\d+)\]\s*", text):
            reason, since = seen.group(1), float(seen.group(2))
        yield NodeTrouble(
            node=node,
            state=state_of(state),
            reason="" if reason == "(null)" else reason,
            since=since,
            partitions=[each for each in partitions.split(",") if each],
        )


def read_factors(lines: Iterable[str]) -> dict[str, dict[str, float]]:
    """Return the parts of the priority by job, without those that are zero."""
    found: dict[str, dict[str, float]] = {}
    for line in lines:
        job, _total, *values = (word.strip() for word in line.split("|"))
        pairs = zip(FACTORS, (_decimal(each) for each in values), strict=False)
        found[job] = {name: value for name, value in pairs if value}
    return found


def read_queue(lines: Iterable[str], factors: dict[str, dict[str, float]]) -> tuple[Queue, dict[tuple[str, str], int]]:
    """Return the queue, and the number of jobs by state and partition."""
    totals: dict[str, int] = {}
    counts: dict[tuple[str, str], int] = {}
    mine: list[LiveJob] = []
    owned: dict[str, int] = {}
    own = 0
    for line in lines:
        words = line.split("|")
        if words[0] == "own" and len(words) == 2:
            own = _whole(words[1]) or 0
        elif words[0] == "owned" and len(words) == 3:
            owned[words[2].lower()] = _whole(words[1]) or 0
        elif words[0] == "total" and len(words) == 3:
            totals[words[2]] = _whole(words[1]) or 0
        elif words[0] == "count" and len(words) == 4:
            counts[words[2], words[3]] = _whole(words[1]) or 0
        elif words[0] == "mine" and len(words) >= 9:
            mine.append(_job(words, factors))
    running, pending = totals.get("RUNNING", 0), totals.get("PENDING", 0)
    other = sum(totals.values()) - running - pending
    queue = Queue(running=running, pending=pending, other=other, mine=mine, mine_total=own, mine_states=owned)
    return queue, counts


def _job(words: Sequence[str], factors: dict[str, dict[str, float]]) -> LiveJob:
    _mine, state, partition, priority, place, tasks, job, start, reason = words[:9]
    return LiveJob(
        job=job,
        state=state.lower(),
        partition=partition,
        tasks=_whole(tasks) or 1,
        priority=_whole(priority) or 0,
        place=_whole(place),
        starts_at=_decimal(start),
        reason="" if reason in wordings.NOTHING else brief(reason),
        factors=factors.get(job) or factors.get(job.partition("_")[0], {}),
    )


def read_fair_share(lines: Sequence[str]) -> Iterable[FairShare]:
    """Yield the shares in the output of sshare, whose first line names the columns."""
    if not lines or "|" not in lines[0]:
        return
    titles = lines[0].split("|")
    for line in lines[1:]:
        row = dict(zip(titles, (word.strip() for word in line.split("|")), strict=False))
        if row.get("User") and row.get("Account"):
            yield FairShare(
                account=row["Account"],
                factor=_decimal(row.get("FairShare", "")),
                shares=_decimal(row.get("NormShares", "")),
                usage=_decimal(row.get("EffectvUsage", "")),
            )


def read_reservation(line: str, person: Person) -> Reservation:
    fields = dict(re.findall(r"(\w+)=(\S+)", line))
    flags = [each for each in fields.get("Flags", "").split(",") if each and each != "(null)"]
    return Reservation(
        name=fields.get("ReservationName", ""),
        starts_at=_decimal(fields.get("StartTime", "")),
        ends_at=_decimal(fields.get("EndTime", "")),
        nodes="" if fields.get("Nodes") == "(null)" else fields.get("Nodes", ""),
        node_count=_whole(fields.get("NodeCnt", "")) or 0,
        flags=flags,
        maintenance="MAINT" in flags,
        active=fields.get("State") == "ACTIVE",
        usable=reservation_is_open(fields, person),
    )


def _has_accounting(lines: Iterable[str]) -> bool:
    return read_config(lines).get("AccountingStorageType", "").endswith("slurmdbd")


def _whole(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() else None


def _decimal(text: str) -> float | None:
    return float(text) if re.fullmatch(r"\d+(\.\d+)?(e[-+]?\d+)?", text) else None
