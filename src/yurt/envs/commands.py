"""`yurt env …`: environments on clusters."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Literal

import click

from yurt.cli import app, render
from yurt.cli.app import Group, context_names, verb

if TYPE_CHECKING:
    from yurt.envs.env import EnvShown, EnvView


@click.group(cls=Group, examples=["yurt env build --context big", "yurt env list", "yurt env show"])
def env() -> None:
    """Build and inspect environments on clusters.

    yurt builds the environment of a project by itself when a Python command first needs it on a cluster: from uv.lock,
    pyproject.toml, requirements.txt or environment.yml. It is built once for each declaration and used by all runs.
    """


@verb(env, examples=["yurt env build --context big", "yurt env build requirements.txt --context big --upgrade"])
@click.argument("file", metavar="[FILE]", required=False, default="")
@click.option("--env-python", "python", metavar="VERSION", default="", help="Version of Python, such as 3.11.")
@click.option("--env-place", "place", metavar="PLACE", default="", help="Where it is kept: scratch, home or tmpdir.")
@click.option("--upgrade", is_flag=True, help="Choose the newest versions of the packages again.")
@click.option(
    "--on",
    type=click.Choice(["login", "node"]),
    help="Build on the login node or in a job; by default in a job only if the login node limits CPU time.",
)
@click.option("--detach", is_flag=True, help="Do not wait until it is built.")
def build(
    file: str, *, python: str, place: str, upgrade: bool, on: Literal["login", "node"] | None, detach: bool
) -> int:
    """Build the environment of this project on a cluster.

    Waits until it is built, unless --detach is given. FILE declares the packages; by default the file that a run
    would use.
    """
    from yurt.cli.progress import watching
    from yurt.envs import env as verbs

    with watching() as watch, _says_that_it_goes_on():
        found = verbs.build(
            file,
            context=app.current().context,
            python=python,
            place=place,
            upgrade=upgrade,
            on=on or "",
            detach=detach,
            watch=watch,
        )
    return render.result(found, lambda: _print_built(found.data))


@contextmanager
def _says_that_it_goes_on() -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        print("yurt: interrupted; a build that was started goes on, see `yurt env list`", file=sys.stderr)
        raise


def _print_built(found: EnvView) -> None:
    if found.condition != "ready":
        print(f"{found.address} {found.condition} on {found.context}")
        return
    print(f"{found.address} ready on {found.context}: {_packages(found)}, Python {found.python}, {_size(found)}")


def _state(found: EnvView) -> str:
    if found.change:
        return f"changed: {found.change}; the next run builds it again"
    return found.condition + (f": {found.failure}" if found.failure else "")


def _packages(found: EnvView) -> str:
    return render.count(found.packages or found.installed, "package")


def _size(found: EnvView) -> str:
    return f"{render.amount(found.size)}, {found.files} files"


@verb(env, name="list", examples=["yurt env list", "yurt env list alpha beta --json"])
@click.argument("contexts", nargs=-1, metavar="[CONTEXT]...", shell_complete=context_names)
def list_(contexts: tuple[str, ...]) -> int:
    """List the environments on clusters, those used last first."""
    from yurt.cli.progress import watching_late
    from yurt.envs import env as verbs

    with watching_late() as watch:
        found = verbs.list_(contexts, context=app.current().context, watch=watch)
    return render.result(found, lambda: _print_list(found.data), requested=True)


def _print_list(found: list[EnvView]) -> None:
    if not found:
        print("no environments")
        return
    rows = [
        [
            each.address,
            each.context,
            each.condition,
            each.project,
            each.title,
            each.python,
            each.place,
            str(each.packages or each.installed),
            render.amount(each.size) if each.size else "",
            str(each.files or ""),
            render.moment(each.used) if each.used else "",
        ]
        for each in found
    ]
    titles = [
        "environment",
        "context",
        "state",
        "project",
        "from",
        "python",
        "place",
        "packages",
        "size",
        "files",
        "last used",
    ]
    if render.terminal_columns() < 130:
        narrow = [titles.index(each) for each in ("environment", "context", "state", "project", "size", "last used")]
        titles, rows = [titles[each] for each in narrow], [[row[each] for each in narrow] for row in rows]
    render.table(titles, rows, folds=["project"])


@verb(env, examples=["yurt env show --context big", "yurt env show 3fa9 --context big --json"])
@click.argument("address", metavar="[ENVIRONMENT]", required=False, default="")
def show(address: str) -> int:
    """Show an environment and its packages.

    By default that of this project. Also says what would change if it was built from the declaration of today.
    """
    from yurt.cli.progress import watching_late
    from yurt.envs import env as verbs

    with watching_late() as watch:
        found = verbs.show(address, context=app.current().context, watch=watch)
    return render.result(found, lambda: _print_shown(found.data), requested=True)


def _print_shown(found: EnvShown) -> None:
    from yurt.cli.run_facts import print_facts

    each = found.env
    print_facts(
        [
            ("environment", each.address),
            ("context", each.context),
            ("state", _state(each)),
            ("from", each.title),
            ("project", each.project),
            ("python", each.python),
            ("modules", ", ".join(each.modules)),
            ("size", _size(each) if each.size else ""),
            ("packed", render.amount(each.packed) if each.packed else ""),
            ("built", render.moment(each.built) if each.built else ""),
            ("last used", render.moment(each.used) if each.used else ""),
            ("folder", each.folder),
        ]
    )
    if found.today and found.today != each.address:
        print(f"\nthe declaration of this project is another environment now: {found.today}")
    if found.changes:
        print("\nchanges")
        for change in found.changes:
            print(f"  {change.name} {change.old or 'absent'} -> {change.new or 'absent'}")
    if found.packages:
        print("\npackages")
        for package in found.packages:
            file = f" from {package.wheelhouse}" if package.wheelhouse else ""
            print(render.plain(f"  {package.name} {package.version}{file}"))


@verb(env, examples=["yurt env remove 3fa9 --context big", "yurt env remove 3fa9 71bc --context big --yes"])
@click.argument("addresses", nargs=-1, required=True, metavar="ENVIRONMENT...")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
def remove(addresses: tuple[str, ...], yes: bool) -> int:
    """Remove environments from a cluster.

    Runs that are using one of them fail. A later run that needs it builds it again, with the same packages.
    """
    from yurt.cli.progress import watching_late
    from yurt.envs import env as verbs

    if not yes:
        _confirm(f"remove {render.count(len(addresses), 'environment')}?")
    with watching_late() as watch:
        found = verbs.remove(addresses, context=app.current().context, watch=watch)
    return render.result(found, lambda: print("\n".join(f"{each} removed" for each in found.data.addresses)))


def _confirm(question: str) -> None:
    """Ask the user; UserError without a terminal. Aborts if the answer is no."""
    from yurt.errors import UserError

    if app.current().json or not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UserError("nothing was removed: there is no terminal to ask on", code="usage", hint="add `--yes`")
    if not click.confirm(question, default=False, err=True):
        raise click.Abort
