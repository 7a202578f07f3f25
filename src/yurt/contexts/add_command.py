"""`yurt context add` and `yurt context probe`: query a site and store its facts."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from yurt.cli import app, progress, render
from yurt.cli.app import context_names, verb
from yurt.cli.option_types import Duration
from yurt.contexts.list_profiles_command import obtain_profile, print_applied
from yurt.errors import UserError

if TYPE_CHECKING:
    from yurt.model.facts import Facts


LABELS = 15
"""Width of the labels of facts."""


def _ask(question: str, names: Sequence[str]) -> str:
    shown = {render.plain(name): name for name in names}
    answer: str = click.prompt(
        f"{question} ({', '.join(shown)})", type=click.Choice(list(shown)), show_choices=False, err=True
    )
    return shown[answer]


@verb(
    examples=[
        "yurt context add big --slurm-url alice@login.big.example",
        "yurt context add big --slurm-url big-alias --account physics --partition gpu",
        "yurt context add big --slurm-url me@big --ssh-option=-J --ssh-option=gateway",
    ],
    context_help="",
)
@click.argument("name", metavar="NAME", required=False, default="")
@click.option("--name", "named", metavar="NAME", default="", help="NAME as an option, as in mrunner.")
@click.option(
    "--slurm-url", required=True, metavar="USER@HOST", help="Login node, or a host alias from your ssh configuration."
)
@click.option("--partition", metavar="NAME", help="Partition to submit to (default: the site's default partition).")
@click.option("--account", metavar="NAME", help="Account to charge (default: your default account on the site).")
@click.option("--qos", metavar="NAME", help="Quality of service.")
@click.option(
    "--storage-dir", metavar="DIR", help="Folder for runs on the site (default: $SCRATCH, or your home folder)."
)
@click.option("--ssh-option", "ssh_options", multiple=True, metavar="ARG", help="Additional ssh argument; repeatable.")
@click.option("--ssh-command", metavar="COMMAND", help="Program to run instead of ssh.")
@click.option("--probe/--no-probe", default=True, help="Query the site first (default), or only write the given keys.")
@click.option(
    "--profile",
    metavar="PROFILE",
    default="",
    help="Site profile: a name, a file or an https address (default: detect).",
)
@click.option("--no-profile", is_flag=True, help="Use no site profile.")
@click.option("--yes", is_flag=True, help="Use a downloaded profile without asking.")
@click.option("--use", is_flag=True, help="Make NAME the current context.")
def add(
    name: str,
    ssh_options: tuple[str, ...],
    ssh_command: str | None,
    *,
    named: str,
    probe: bool,
    profile: str,
    no_profile: bool,
    yes: bool,
    use: bool,
    **keys: Any,
) -> None:
    """Add a context for a Slurm cluster.

    Connects to the cluster, detects its partitions, accounts and storage, and writes context NAME. What is publicly
    known about a well-known cluster completes it (see `yurt context profiles`).
    """
    import shlex

    from yurt.config import contexts
    from yurt.contexts import add as verbs
    from yurt.model.context import Context

    if name and named:
        raise click.UsageError(f"the context has two names, '{name}' and '{named}'; give one of them")
    name = name or named
    if not name:
        raise click.UsageError("missing argument 'NAME'")
    contexts.check_name(name)
    given = {key: value for key, value in keys.items() if value is not None}
    try:
        program = tuple(shlex.split(ssh_command or ""))
    except ValueError as error:
        raise click.UsageError(f"--ssh-command: {error}") from None
    if not given["slurm_url"].strip():
        raise click.UsageError("--slurm-url is empty")
    if not program:
        _check_port(given["slurm_url"])
    if profile and no_profile:
        raise click.UsageError("--profile and --no-profile cannot be combined")
    wanted = Context(name=name, type="slurm", ssh_options=ssh_options, ssh_command=program, **given)
    interactive = sys.stdin.isatty() and sys.stderr.isatty() and not app.current().json
    known = obtain_profile(profile, yes=yes, interactive=interactive) if profile else None
    with progress.watching(asks=interactive) as watch:
        added = verbs.add(
            wanted,
            look=probe,
            use=use,
            profile=known,
            recognise=not no_profile,
            ask=_ask if interactive else None,
            watch=watch,
        )

    def print_text() -> None:
        if added.data.facts is not None:
            print_facts(added.data.facts)
            print()
        if added.data.profile is not None:
            print_applied(added.data.profile)
            print()
        print(f"context '{name}' added" + ("; it is now the current context" if added.data.current else ""))
        print(f"next:  yurt context show {name}")

    render.result(added, print_text)


def _check_port(address: str) -> None:
    """Raise UserError for host:22: ssh takes the port as an option."""
    host, colon, port = address.removeprefix("ssh://").partition(":")
    if colon and port.isdigit() and host:
        raise UserError(
            f"--slurm-url: '{address}' contains a port, which ssh takes as an option",
            code="usage",
            hint=f"use `--slurm-url {host} --ssh-option=-p --ssh-option={port}`",
        )


@verb(examples=["yurt context probe", "yurt context probe alpha --deep"])
@click.argument("name", metavar="[NAME]", required=False, default="", shell_complete=context_names)
@click.option("--deep", is_flag=True, help="Also run a short job to query a compute node.")
@click.option(
    "--internet",
    metavar="HOST:PORT",
    default="",
    help="Address that --deep uses to test internet access from the node (default: example.com:443).",
)
@click.option(
    "--timeout",
    metavar="TIME",
    type=Duration("2m", least=5, most=3600),
    default="2m",
    show_default=True,
    help="How long --deep waits for its job to start: 90s, 10m.",
)
def probe(name: str, deep: bool, internet: str, timeout: float) -> None:
    """Query a site and cache its facts.

    Queries the site of context NAME, or of the current context. The facts are cached for a week.
    """
    from yurt.contexts import probe as verbs

    name = name or app.current().context
    with progress.watching() as watch:
        found = verbs.probe(name, deep=deep, internet=internet, timeout=round(timeout), watch=watch)
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
        each.name + ((" (default)" if app.plain() else "*") if each.default else ""),
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
