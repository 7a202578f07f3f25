"""`yurt home install CONTEXT`: put the command home_sync on a login host."""

from __future__ import annotations

import click

from yurt.cli import render
from yurt.cli.app import context_names, verb


@verb(examples=["yurt home install alpha", "yurt home install alpha --remove"], context_help="")
@click.argument("name", metavar="CONTEXT", shell_complete=context_names)
@click.option("--remove", is_flag=True, help="Remove the command from the login host.")
def install(name: str, remove: bool) -> int:
    """Install the command home_sync on a login host.

    Writes ~/.local/bin/home_sync on the login host of CONTEXT. It is a shell script that syncs the home there with the
    other homes that the login host reaches by ssh, at the addresses in homes.yaml. It uses the same profile, lock and
    backups as yurt, and releases jobs that wait for a home sync. It needs Unison, but neither yurt nor Python. Install
    it again after changes to homes.yaml.
    """
    from yurt.homes import install_command_line as verbs

    found = verbs.remove(name) if remove else verbs.put(name)

    def print_text() -> None:
        done = found.data
        if not remove:
            print(render.plain(f"{done.path} on {name} syncs with {', '.join(done.places)}"))
        else:
            print(render.plain(f"removed {done.path} from {name}" if done.path else f"{name} has no home_sync"))

    return render.result(found, print_text)
