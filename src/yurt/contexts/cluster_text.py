"""The text of `yurt cluster`: roles, partitions with bars, the queue, your jobs, reservations."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from yurt.cli import app, bars, render
from yurt.cli.listing import Drawn, listing
from yurt.contexts.probe import print_facts, space, time_text
from yurt.model.live import STATES, Live, LiveGpus, LiveJob, LiveNodes, LivePartition, Reservation

if TYPE_CHECKING:
    from yurt.contexts.cluster import Cluster
    from yurt.model.facts import Facts

LABELS = 13
"""Width of the labels."""

MARKS = {
    "idle": ("░", "green"),
    "mixed": ("▒", "cyan"),
    "allocated": ("█", "cyan"),
    "powered down": ("·", "green"),
    "drained": ("x", "yellow"),
    "down": ("x", "red"),
}
"""The character and colour of each state of a node; others are as OTHER."""

OTHER = ("-", "yellow")

MOST_JOBS = 10
"""How many of your jobs are listed without -v."""


def print_cluster(found: Cluster, *, details: bool) -> None:
    """Print a context's site; `details`: also why nodes are down, every job of yours and the recorded facts."""
    live, facts = found.live, found.facts
    _heading(found)
    if live is None and facts is None:
        _line("state", "unreachable, and there are no recorded facts")
    if live is not None and live.load is not None:
        _print_machine(live)
    elif live is not None:
        _print_roles(live, facts)
        if not live.silent:
            _print_slurm(live, details=details)
    for note in found.notes:
        _line("note", note)
    if facts is not None and (live is None or live.silent or details):
        print_facts(facts)
    for each in found.avoided_nodes:
        reason = f"{each.why or 'a run failed on this node'}, {render.moment(each.at)} (run {each.run})"
        _line("avoided", f"{each.node}: {reason}")


def _heading(found: Cluster) -> None:
    on, off = render.codes("bold") if render.colours() else ("", "")
    facts = found.facts
    if found.live is None:
        kind = ""  # the recorded facts begin with the version
    elif found.live.load is not None:
        kind = ": this machine"
    else:
        kind = f": Slurm {facts.slurm_version} '{facts.cluster}'" if facts is not None and facts.slurm_version else ""
    print(f"{on}{render.plain(found.context)}{off}{render.plain(kind)}")


def _print_machine(live: Live) -> None:
    queue = live.queue
    _line("compute", f"{live.host}: load {live.load}")
    _line("free", _free(live.nodes))
    waiting = f", {queue.pending} waiting for a slot" if queue.pending else ""
    _line("runs", f"{queue.running} running{waiting}")
    if queue.mine:
        rows = [[each.run, each.state, "" if each.place is None else str(each.place)] for each in queue.mine]
        render.table(["run", "state", "place"], rows[:MOST_JOBS], numbers=["place"])


def _print_roles(live: Live, facts: Facts | None) -> None:
    user = f" (you are {facts.user})" if facts is not None and facts.user else ""
    _line("login", live.host + user)
    roles = [f"{each.host} ({each.role}, {'up' if each.up else 'down'})" for each in live.controllers]
    _line("controller", ", ".join(roles))
    if not live.silent:
        text = render.count(live.nodes.count, "node")
        _line("compute", f"{text}: {bars.words(_parts(live.nodes))}")
    if facts is not None:
        tiers = [f"{each.name} {each.path}" for each in facts.tiers]  # their free space is not queried
        _line("shared files", ", ".join(tiers))


def _print_slurm(live: Live, *, details: bool) -> None:
    _line("free", _free(live.nodes))
    _print_partitions(live.partitions)
    if live.troubles and not details:
        count = render.count(len(live.troubles), "node")
        verb = "is" if len(live.troubles) == 1 else "are"
        _line("nodes", f"{count} {verb} down or drained; -v shows why")
    for each in live.troubles if details else []:
        since = f" since {_time(each.since)}" if each.since else ""
        _line(each.state, f"{each.node}{since}: {each.reason or 'no reason given'}")
    _print_queue(live, details=details)
    for share in live.fair_share:
        parts = [f"factor {share.factor:.2f}" if share.factor is not None else ""]
        parts += [f"{share.usage:.1%} of the usage" if share.usage is not None else ""]
        parts += [f"{share.shares:.1%} of the shares" if share.shares is not None else ""]
        _line("fair share", f"{share.account}: {', '.join(part for part in parts if part)}")
    if live.accounting_silent:
        _line("fair share", "the accounting database does not respond")
    for reserved in sorted(live.reservations, key=lambda each: each.starts_at or 0):
        _line("maintenance" if reserved.maintenance else "reservation", _reservation(reserved))


def _print_partitions(partitions: Sequence[LivePartition]) -> None:
    titles = ["partition", "limit", "default", "preempt", "nodes", "cpus free", "mem free", "gpus free", "run", "wait"]
    optional = ("preempt", "gpus free")
    rows: list[list[str | Drawn]] = [_row(each) for each in partitions]
    used = [at for at, title in enumerate(titles) if title not in optional or any(row[at] for row in rows)]
    if rows:
        listing(
            [titles[at] for at in used],
            [[row[at] for at in used] for row in rows],
            styles=["" if each.usable else "dim" for each in partitions],
            styled="partition",
            shrinks=["nodes", "partition", "gpus free"],
            drops=["default", "preempt", "wait", "run"],
            numbers=["cpus free", "mem free", "run", "wait"],
            notes=["" if each.usable else f"not for you: {each.why_not}" for each in partitions],
        )


def _row(each: LivePartition) -> list[str | Drawn]:
    nodes = each.nodes
    limit = time_text(each.max_minutes)
    if each.max_nodes is not None:
        limit += f", {render.count(each.max_nodes, 'node')}"
    return [
        each.name + ((" (default)" if app.plain() else "*") if each.default else ""),
        limit,
        time_text(each.default_minutes),
        f"{each.preempt}, {each.grace_seconds} s" if each.preempt and each.grace_seconds else each.preempt,
        bars.BarCell(_parts(nodes)),
        f"{nodes.free_cpus}/{nodes.cpus}",
        _gigabytes(nodes),
        ", ".join(_gpus(gpu) for gpu in nodes.gpus),
        str(each.running),
        str(each.pending),
    ]


def _print_queue(live: Live, *, details: bool) -> None:
    queue = live.queue
    other = f", {queue.other} in other states" if queue.other else ""
    states = sorted(queue.mine_states.items(), reverse=True)
    mine = ", ".join(f"{count} {state}" for state, count in states) or "none"
    _line("queue", f"{queue.running} running, {queue.pending} pending{other}; yours: {mine}")
    jobs = queue.mine if details else queue.mine[:MOST_JOBS]
    if not jobs:
        return
    titles = ["job", "run", "state", "partition", "place", "start", "priority", "reason"]
    rows = [_job_row(each, details=details) for each in jobs]
    used = [at for at, title in enumerate(titles) if title not in ("run", "place") or any(row[at] for row in rows)]
    listing(
        [titles[at] for at in used],
        [[row[at] for at in used] for row in rows],
        styles=["" for _row in rows],
        styled="state",
        shrinks=["reason", "job", "partition"],
        drops=["priority", "start"],
        numbers=["place"],
    )
    if queue.mine_total > len(jobs):
        more = queue.mine_total - len(jobs)
        print(f"and {more} more" + ("; -v shows them" if len(queue.mine) > len(jobs) else ""))


def _job_row(each: LiveJob, *, details: bool) -> list[str]:
    tasks = f" ({each.tasks} tasks)" if each.tasks > 1 else ""
    factors = ", ".join(f"{name} {value:g}" for name, value in each.factors.items()) if details else ""
    return [
        each.job + tasks,
        each.run,
        each.state,
        each.partition,
        "" if each.place is None else str(each.place),
        _time(each.starts_at),
        f"{each.priority} ({factors})" if factors else str(each.priority),
        each.reason,
    ]


def _reservation(each: Reservation) -> str:
    until = f" to {_time(each.ends_at)}" if each.ends_at is not None else ""
    nodes = f"{render.count(each.node_count, 'node')} {each.nodes}".strip()
    yours = "" if each.maintenance else ", open to you" if each.usable else ", not for you"
    flags = f" ({', '.join(each.flags)})" if each.flags else ""
    return f"{each.name}: {_time(each.starts_at)}{until}, {nodes}{yours}{flags}"


def _parts(nodes: LiveNodes) -> list[bars.Part]:
    states = [*(state for state in STATES if state in nodes.states), *(set(nodes.states) - set(STATES))]
    return [(state, nodes.states[state], *MARKS.get(state, OTHER)) for state in states]


def _free(nodes: LiveNodes) -> str:
    parts = [f"{nodes.free_cpus} of {render.count(nodes.cpus, 'CPU')}"]
    if nodes.free_memory_mb is not None and nodes.memory_mb is not None:
        parts.append(f"{space(nodes.free_memory_mb)} of {space(nodes.memory_mb)} memory")
    elif nodes.memory_mb is not None:
        parts.append(f"{space(nodes.memory_mb)} memory in all")
    parts += [f"{gpu.free} of {gpu.total} {gpu.type or 'GPUs'}" for gpu in nodes.gpus]
    return ", ".join(parts)


def _gigabytes(nodes: LiveNodes) -> str:
    return "" if nodes.memory_mb is None else f"{(nodes.free_memory_mb or 0) // 1000}/{nodes.memory_mb // 1000} GB"


def _gpus(gpu: LiveGpus) -> str:
    return f"{gpu.type or 'gpu'} {gpu.free}/{gpu.total}"


def _time(at: float | None) -> str:
    """Return a time without the seconds, and without the date if it is today."""
    today, _space, _clock = render.moment(time.time()).partition(" ")
    return render.moment(at)[:-3].removeprefix(f"{today} ")


def _line(label: str, text: str) -> None:
    if text:
        render.fact(label, text, LABELS)
