"""context probe: query a site and save the facts."""

from __future__ import annotations

import time
from typing import Any

from yurt.cli import call, progress, render
from yurt.cli.completers import context_names
from yurt.cli.declare import argument, option, verb
from yurt.cli.values import Duration
from yurt.config import contexts
from yurt.contexts.facts import INTERNET, ask, ask_node, cautions
from yurt.model.facts import Facts
from yurt.model.progress import Watch, unwatched
from yurt.model.result import Result

LABELS = 15
"""Width of the labels of facts."""


def probe(
    name: str = "", *, deep: bool = False, internet: str = "", timeout: int = 120, watch: Watch = unwatched
) -> Result[Facts]:
    """Query the site of a context, by default the current context.

    `deep`: also query a compute node, with a job that must start within `timeout` seconds and that connects to
    `internet`.
    """
    context = contexts.site(contexts.current_name(name))
    if deep:
        found = ask_node(context, internet=internet or INTERNET, patience=timeout, watch=watch)
    else:
        found = ask(context, watch=watch)
    return Result(kind="facts", data=found, warnings=cautions(found))


@verb(examples=["yurt context probe", "yurt context probe alpha --deep"])
@argument("name", metavar="[NAME]", required=False, default="", shell_complete=context_names)
@option("--deep", is_flag=True, help="Also run a short job to query a compute node.")
@option(
    "--internet",
    metavar="HOST:PORT",
    default="",
    help="Address that --deep uses to test internet access from the node (default: example.com:443).",
)
@option(
    "--timeout",
    metavar="TIME",
    type=Duration("2m", least=5, most=3600),
    default="2m",
    show_default=True,
    help="How long --deep waits for its job to start: 90s, 10m.",
)
def probe_command(name: str, deep: bool, internet: str, timeout: float) -> None:
    """Query a site and cache its facts.

    Queries the site of context NAME, or of the current context. The facts are cached for a week.
    """

    name = name or call.current().context
    with progress.watching() as watch:
        found = probe(name, deep=deep, internet=internet, timeout=round(timeout), watch=watch)
    render.result(found, lambda: print_facts(found.data), requested=True)


def print_facts(facts: Facts) -> None:
    """Print a summary of a site."""
    from yurt.model.facts import largest_array

    where = f"{facts.user}@{facts.host}"
    slurm_name = f"Slurm {facts.slurm_version} '{facts.cluster}'" if facts.slurm_version else "no Slurm"
    print(render.plain(f"{where}: {slurm_name}"))
    if facts.partitions:
        titles = ["partition", "limit", "default", "preempt", "nodes", "cpus", "memory", "gpus"]
        rows = [_partition_row(each) for each in facts.partitions]
        used = [
            at for at, title in enumerate(titles) if title not in ("preempt", "gpus") or any(row[at] for row in rows)
        ]
        folds = ["partition", "preempt", "gpus"]
        render.table([titles[at] for at in used], [[row[at] for at in used] for row in rows], folds=folds)
    slurm = bool(facts.slurm_version)
    lines = {
        "accounting": ("yes, but not responding" if facts.accounting_silent else "yes") if facts.accounting else "no",
        "accounts": ", ".join(f"{each.name} ({', '.join(each.qos)})" for each in facts.accounts),
        "qos": ", ".join(
            each.name + (f" (at most {each.max_submit} jobs)" if each.max_submit else "") for each in facts.qos
        ),
        "arrays": f"up to {largest_array(facts)} tasks" if facts.slurm_version else "",
        "requeue": ("yes" if facts.requeue else f"no: {facts.requeue_refusal}") if slurm else "",
        "jobs from home": ("yes" if not facts.home_refusal else f"no: {facts.home_refusal}") if slurm else "",
        "storage": ", ".join(f"{each.name} {each.path} ({space(each.free_mb)} free)" for each in facts.tiers),
        "modules": facts.modules or "none",
        "tools": ", ".join(facts.tools),
    }
    if facts.node is not None:
        node = facts.node
        lines["node"] = (
            f"{node.node}: internet {'yes' if node.internet else 'no'}, ssh {'yes' if node.ssh else 'no'}, "
            f"local disk {node.local_disk or 'none'} ({space(node.local_free_mb)} free)"
        )
    for name, text in lines.items():
        if text:
            render.fact(name, text, LABELS + 1)
    render.fact("probed", time.strftime("%Y-%m-%d %H:%M", time.localtime(facts.probed_at)), LABELS + 1)


def _partition_row(each: Any) -> list[str]:
    kinds = each.nodes
    gpus = ", ".join(sorted({f"{kind.gpu_type or 'gpu'}:{kind.gpus}" for kind in kinds if kind.gpus}))
    preempt = f"{each.preempt}, {each.grace_seconds} s grace" if each.preempt else ""
    return [
        each.name + ((" (default)" if call.plain() else "*") if each.default else ""),
        time_text(each.max_minutes),
        time_text(each.default_minutes),
        preempt,
        str(sum(kind.count for kind in kinds)),
        _range([kind.cpus for kind in kinds]),
        _range([kind.memory_mb // 1000 for kind in kinds], " GB"),
        gpus,
    ]


def _range(values: list[int], unit: str = "") -> str:
    if not values:
        return ""
    low, high = min(values), max(values)
    return f"{low}{unit}" if low == high else f"{low}-{high}{unit}"


def time_text(minutes: int | None) -> str:
    """Return a duration in words; none means no limit."""
    if minutes is None:
        return "none"
    days, rest = divmod(minutes, 1440)
    hours, left = divmod(rest, 60)
    parts = [f"{days} d" if days else "", f"{hours} h" if hours else "", f"{left} min" if left else ""]
    return " ".join(part for part in parts if part) or "0 min"


def space(megabytes: int | None) -> str:
    """Return an amount of storage or memory."""
    if megabytes is None:
        return "?"
    return f"{megabytes / 1000:.1f} GB" if megabytes >= 1000 else f"{megabytes} MB"
