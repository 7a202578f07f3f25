"""`yurt lab …`: manage the lab."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from yurt.cli import app, progress, render
from yurt.cli.app import Group, verb
from yurt.config.paths import as_typed

if TYPE_CHECKING:
    from yurt.lab.status import HostStatus, LabStatus

CLUSTERS = ("alpha", "beta")
SLURM_VERSIONS = ("22.05", "24.11", "26.05")
"""The keys of yurt.lab.versions.RELEASES, which `--help` does not import."""


@click.group(
    cls=Group,
    lazy={"fault": ("yurt.lab.fault_command:fault", "Inject faults into the lab, or undo them.")},
    examples=["yurt lab up", "yurt lab shell alpha", "yurt lab down"],
    context_help="",
)
def lab() -> None:
    """Manage two real Slurm clusters on this machine.

    Use them to try, teach or test yurt. They require Linux and root. alpha has accounting, GPUs, preemption and ssh
    to its nodes. beta has none of these, and stricter limits.
    """


instance_option = click.option(
    "--instance", metavar="NAME", default="", help="Name of the lab (default: $YURT_LAB, or `default`)."
)
_clusters = click.argument("clusters", metavar="[CLUSTERS]...", nargs=-1, type=click.Choice(CLUSTERS))


@verb(
    lab,
    examples=[
        *("yurt lab up", "yurt lab up alpha -v", "yurt lab up --install", "yurt lab up --instance class2"),
        "yurt lab up --slurm 26.05 --instance new",
    ],
    context_help="",
)
@_clusters
@instance_option
@click.option("--install", is_flag=True, help="Install missing Debian packages without starting their services.")
@click.option("--link/--no-link", default=None, help="Connect or disconnect the login hosts of the clusters.")
@click.option("--subnet", metavar="NET", default="", help="Private network for the connections to the login hosts.")
@click.option(
    "--limits",
    type=click.Choice(["auto", "v1", "v2", "none"]),
    default="auto",
    help="Version of cgroups used to enforce memory limits on alpha (default: auto; v2 is untested).",
)
@click.option(
    "--slurm",
    type=click.Choice(SLURM_VERSIONS),
    callback=lambda _context, _option, value: value or "",
    help="Version of Slurm on the clusters (default: that of this machine). The first use of another one takes a "
    "minute and 750 MB of disk.",
)
def up(clusters: tuple[str, ...], instance: str, **options: Any) -> None:
    """Start the clusters and write their contexts.

    Without CLUSTERS, starts both.
    """
    from yurt.lab import manage as verbs

    try:
        with progress.watching() as watch:
            found = verbs.up(clusters, name=instance, watch=watch, **options)
    except KeyboardInterrupt:
        print("\nyurt: interrupted; `yurt lab up` continues, `yurt lab down` stops the lab", file=sys.stderr)
        raise

    def print_text() -> None:
        started = found.data
        (first, seconds), *others = sorted(started.seconds.items())
        times = "".join(f", {name} in {each:.1f} s" for name, each in others)
        print(
            f"{first} ready in {seconds:.1f} s{times}; Slurm {started.slurm}, {render.size(started.memory)} of memory"
        )
        print(f"contexts: {', '.join(started.contexts)}")
        print(f"next:  yurt lab shell {first}{_instance_option(instance)}  (as user alice)")
        print(f"or:    ssh -F {as_typed(started.ssh_config)} {first}")
        if app.current().verbose:
            now = verbs.figures(instance)
            print(f"idle:  {now.idle_percent:.2f} % of a core, {render.size(now.memory)}")

    render.result(found, print_text)


def _instance_option(instance: str) -> str:
    return f" --instance {instance}" if instance else ""


@verb(
    lab,
    examples=["yurt lab down", "yurt lab down beta", "yurt lab down --wipe", "yurt lab down --wipe --roots"],
    context_help="",
)
@_clusters
@instance_option
@click.option("--wipe", is_flag=True, help="Also remove the lab's disks, job history and contexts.")
@click.option("--roots", is_flag=True, help="With --wipe, also remove the root file systems of `lab up --slurm`.")
def down(clusters: tuple[str, ...], instance: str, wipe: bool, roots: bool) -> None:
    """Stop the clusters.

    Without CLUSTERS, stops both. Their disks are kept for the next `yurt lab up`.
    """
    from yurt.lab import manage as verbs

    with progress.watching() as watch:
        done = verbs.down(clusters, name=instance, wipe=wipe, remove_roots=roots, watch=watch)
    names = " and ".join(done.data.clusters)
    text = f"{names} stopped{' and wiped' if wipe else ''}" if names else f"nothing to stop{' or wipe' if wipe else ''}"
    if done.data.roots:
        text += f"; removed the roots with Slurm {' and '.join(done.data.roots)}"
    render.result(done, lambda: print(text))


@verb(lab, examples=["yurt lab status", "yurt lab status --json"], context_help="")
@instance_option
def status(instance: str) -> None:
    """Show the lab's hosts, daemons, addresses and memory use."""
    from yurt.lab import manage as verbs

    found = verbs.status(instance)
    render.result(found, lambda: _print_status(found.data), requested=True)


NARROW = 100
"""On a terminal with fewer columns, the addresses outside the clusters are in a line below the table."""


def _print_status(found: LabStatus) -> None:
    hosts = [(cluster.name, host) for cluster in found.clusters for host in cluster.hosts]
    rows = [_row(name, host) for name, host in hosts]
    bad = {row[4] for row, (_name, host) in zip(rows, hosts, strict=True) if host.missing or not host.up}
    columns = ["host", "address", "outside", "slurm", "daemons", "memory"]
    narrow = render.terminal_columns() < NARROW
    if narrow:
        columns, rows = [name for name in columns if name != "outside"], [[*row[:2], *row[3:]] for row in rows]
    render.table(columns, rows, numbers=["memory"], folds=["daemons"], bad=bad)
    print()
    outside = [f"{name}:{host.name} {host.outside}" for name, host in hosts if host.outside]
    if narrow and outside:
        render.fact("outside: ", ", ".join(outside), len("outside: "))
    versions = " and ".join(dict.fromkeys(cluster.slurm for cluster in found.clusters if cluster.slurm))
    print(
        f"lab '{found.instance}': Slurm {versions or 'not installed'}, {render.size(found.memory)}, "
        f"link {'on' if found.linked else 'off'}, memory limits {found.limits or 'not set'}"
    )
    for cluster in found.clusters:
        if cluster.index is not None:
            size = render.count(cluster.index.packages, "package")
            print(f"package index of {cluster.name}: {cluster.index.url} ({size})")
    if found.ssh_config:
        print(f"ssh config: {as_typed(found.ssh_config)}")


def _row(cluster: str, host: HostStatus) -> list[str]:
    where = [f"{cluster}:{host.name}", host.address, host.outside, host.slurm]
    if not host.up:
        return [*where, "off", ""]
    daemons = [*host.daemons, *(f"{name} is not running" for name in host.missing)]
    return [*where, ", ".join(daemons), render.size(host.memory)]


@verb(lab, name="set", examples=["yurt lab set alpha KillWait=30", "yurt lab set alpha KillWait="], context_help="")
@click.argument("cluster", metavar="CLUSTER", type=click.Choice(CLUSTERS))
@click.argument("settings", metavar="KEY=VALUE...", nargs=-1, required=True)
@instance_option
def set_(cluster: str, settings: tuple[str, ...], instance: str) -> None:
    """Change slurm.conf settings of a running cluster.

    An empty value restores the lab's default. Changes last until `yurt lab down --wipe`. Settings that Slurm reads
    only at startup take effect after `yurt lab down` and `yurt lab up`.
    """
    from yurt.lab import manage as verbs

    done = verbs.configure(cluster, settings, name=instance)
    lines = ", ".join(f"{key}={value}" for key, value in done.data.settings.items()) or "default settings"
    render.result(done, lambda: print(f"{cluster}: {lines}"))


@verb(
    lab,
    examples=["yurt lab index dist/mytool-1.0-py3-none-any.whl", "yurt lab index wheels/*.whl"],
    context_help="",
)
@click.argument("files", metavar="FILE...", nargs=-1, required=True)
@instance_option
def index(files: tuple[str, ...], instance: str) -> None:
    """Add packages to alpha's package index.

    FILE is a wheel or a source distribution. `pip install` and `uv pip install` on alpha install from this index, and
    from no other. It is empty at first, and keeps its files until `yurt lab down --wipe`.
    """
    from yurt.lab import manage as verbs

    done = verbs.index(files, name=instance)
    render.result(done, lambda: print("\n".join(f"added {each.file}" for each in done.data.added)))


@verb(
    lab,
    examples=["yurt lab shell alpha", "yurt lab shell alpha:n1", "yurt lab shell beta --user bob -- squeue"],
    context_help="",
    context_settings={"ignore_unknown_options": True},
)
@click.argument("target", metavar="CLUSTER[:HOST]")
@click.argument("command", nargs=-1, metavar="[COMMAND]...", type=click.UNPROCESSED)
@click.option(
    "--user", metavar="NAME", default="", help="User to run as (default: alice on a login host, root elsewhere)."
)
@instance_option
def shell(target: str, command: tuple[str, ...], user: str, instance: str) -> int:
    """Open a shell or run COMMAND on a lab host."""
    from yurt.lab import manage as verbs

    found = verbs.shell_command(target, name=instance, user=user, command=command)
    if app.current().json:
        return render.result(found, lambda: None)
    import subprocess

    return subprocess.call(found.data.argv)
