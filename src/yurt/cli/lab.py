"""`yurt lab …`: the lab's verbs on the command line."""

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


@click.group(
    cls=Group,
    lazy={"fault": ("yurt.cli.lab_fault:fault", "Break something real in the lab, or heal it.")},
    examples=["yurt lab up", "yurt lab shell alpha", "yurt lab down"],
)
def lab() -> None:
    """Two real Slurm clusters on this machine (Linux, root): to try yurt, to teach, to test.

    alpha has accounting, GPUs, preemption and ssh to nodes. beta has none of these, and rules of its own.
    """


instance_option = click.option(
    "--instance", metavar="NAME", default="", help="Which lab, if you have several (default: $YURT_LAB, else default)."
)
_clusters = click.argument("clusters", metavar="[CLUSTERS]...", nargs=-1, type=click.Choice(CLUSTERS))


@verb(lab, examples=["yurt lab up", "yurt lab up alpha -v", "yurt lab up --install", "yurt lab up --instance class2"])
@_clusters
@instance_option
@click.option("--install", is_flag=True, help="Install missing Debian packages; none of their services is started.")
@click.option("--link/--no-link", default=None, help="Connect the two clusters' login hosts, or not (as it was).")
@click.option("--subnet", metavar="NET", default="", help="Private network for the links to the login hosts.")
@click.option(
    "--limits",
    type=click.Choice(["auto", "v1", "v2", "none"]),
    default="auto",
    help="Control groups that hold alpha's jobs to their memory (v2 is unverified).",
)
def up(clusters: tuple[str, ...], instance: str, **options: Any) -> None:
    """Bring CLUSTERS up (both, if none is named) and write contexts for them."""
    from yurt.verbs import lab as verbs

    try:
        with progress.watching() as watch:
            found = verbs.up(clusters, name=instance, watch=watch, **options)
    except KeyboardInterrupt:
        print("\ninterrupted; `yurt lab up` goes on from here, `yurt lab down` stops what is up", file=sys.stderr)
        raise

    def for_people() -> None:
        started = found.data
        times = ", ".join(f"{name} {seconds:.1f} s" for name, seconds in sorted(started.seconds.items()))
        print(f"ready: {times}, {render.size(started.memory)}")
        print(f"contexts: {', '.join(started.contexts)}")
        print(f"next:  yurt lab shell {sorted(started.seconds)[0]}{_again(instance)}  (you are alice)")
        print(f"or:    ssh -F {as_typed(started.ssh_config)} {sorted(started.seconds)[0]}")
        if app.current().verbose:
            now = verbs.figures(instance)
            print(f"idle:  {now.idle_percent:.2f} % of a core, {render.size(now.memory)}")

    render.result(found, for_people)


def _again(instance: str) -> str:
    return f" --instance {instance}" if instance else ""


@verb(lab, examples=["yurt lab down", "yurt lab down beta", "yurt lab down --wipe"])
@_clusters
@instance_option
@click.option("--wipe", is_flag=True, help="Remove the lab's disks, job history and contexts too.")
def down(clusters: tuple[str, ...], instance: str, wipe: bool) -> None:
    """Stop CLUSTERS (both, if none is named). Their disks stay for the next `up`."""
    from yurt.verbs import lab as verbs

    with progress.watching() as watch:
        done = verbs.down(clusters, name=instance, wipe=wipe, watch=watch)
    names = " and ".join(done.data.clusters)
    render.result(done, lambda: print(f"{names} stopped" + (" and wiped" if wipe else "")))


@verb(lab, examples=["yurt lab status", "yurt lab status --json"])
@instance_option
def status(instance: str) -> None:
    """Show the lab's hosts, daemons, addresses and memory."""
    from yurt.verbs import lab as verbs

    found = verbs.status(instance)
    render.result(found, lambda: _print_status(found.data), asked=True)


def _print_status(found: LabStatus) -> None:
    rows = [_row(cluster.name, host) for cluster in found.clusters for host in cluster.hosts]
    render.table(
        ["host", "address", "outside", "slurm", "daemons", "memory"], rows, numbers=["memory"], folds=["daemons"]
    )
    print()
    print(
        f"lab '{found.instance}': {render.size(found.memory)}, link {'on' if found.linked else 'off'}, "
        f"memory limits {found.limits or 'not decided yet'}"
    )
    print(f"ssh config: {as_typed(found.ssh_config)}")


def _row(cluster: str, host: HostStatus) -> list[str]:
    where = [f"{cluster}:{host.name}", host.address, host.outside, host.slurm]
    if not host.up:
        return [*where, "[red]off[/red]", ""]
    daemons = [*host.daemons, *(f"[red]{name} is not running[/red]" for name in host.missing)]
    return [*where, ", ".join(daemons), render.size(host.memory)]


@verb(lab, name="set", examples=["yurt lab set alpha KillWait=30", "yurt lab set alpha KillWait="])
@click.argument("cluster", metavar="CLUSTER", type=click.Choice(CLUSTERS))
@click.argument("settings", metavar="KEY=VALUE...", nargs=-1, required=True)
@instance_option
def set_(cluster: str, settings: tuple[str, ...], instance: str) -> None:
    """Change settings of a running cluster's slurm.conf. An empty value restores the lab's own.

    Settings stay until `yurt lab down --wipe`. Those that Slurm reads only at its start need `yurt lab down` and `up`.
    """
    from yurt.verbs import lab as verbs

    done = verbs.configure(cluster, settings, name=instance)
    lines = ", ".join(f"{key}={value}" for key, value in done.data.settings.items()) or "the lab's own settings"
    render.result(done, lambda: print(f"{cluster}: {lines}"))


@verb(
    lab,
    examples=["yurt lab shell alpha", "yurt lab shell alpha:n1", "yurt lab shell beta --user bob -- squeue"],
    context_settings={"ignore_unknown_options": True},
)
@click.argument("target", metavar="CLUSTER[:HOST]")
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
@click.option("--user", metavar="NAME", default="", help="alice, bob, root, … (alice on a login host, else root).")
@instance_option
def shell(target: str, command: tuple[str, ...], user: str, instance: str) -> int:
    """Open a shell on a host of the lab, or run COMMAND there."""
    from yurt.verbs import lab as verbs

    found = verbs.shell_command(target, name=instance, user=user, command=command)
    if app.current().json:
        return render.result(found, lambda: None)
    import subprocess

    return subprocess.call(found.data.argv)
