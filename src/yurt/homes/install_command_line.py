"""home install: put the command `home_sync` on a login host, or remove it."""

from __future__ import annotations

import msgspec

from yurt.cli import render
from yurt.cli.completers import context_names
from yurt.cli.declare import argument, option, verb
from yurt.errors import UserError
from yurt.homes import config, install
from yurt.homes.places import Place
from yurt.model.context import LOCAL
from yurt.model.result import Result


class Installed(msgspec.Struct, frozen=True, kw_only=True):
    """The command on a login host."""

    context: str
    """The context whose login host has it."""
    path: str
    """Where it is; empty if it was to be removed, and there was none."""
    places: list[str]
    """The other places that it syncs with."""
    removed: bool = False
    """Whether it was removed."""


def put(name: str) -> Result[Installed]:
    """Write `~/.local/bin/home_sync` on the login host of a context. UserError: it reaches none of the other places."""
    homes = config.load()
    if homes is None:
        raise UserError("no homes are in sync yet", code="usage", hint=f"set them up with `yurt home sync {name}`")
    hub = _place(name)
    path, on_path, silent = install.install(homes, hub)
    warnings = [
        f"ssh from {name} to {each} does not work without a password; set up a key for it there" for each in silent
    ]
    if not on_path:
        warnings.append(f"~/.local/bin is not on the PATH of {name}; add it in your profile there, or type `{path}`")
    places = list(install.addresses(homes, hub))
    data = Installed(context=name, path=path, places=places)
    return Result(kind="home-installed", data=data, warnings=warnings)


def remove_from(name: str) -> Result[Installed]:
    """Remove `home_sync` from the login host of a context."""
    path = install.remove(_place(name))
    return Result(kind="home-installed", data=Installed(context=name, path=path, places=[], removed=True))


def _place(name: str) -> Place:
    """Return the place of a context. UserError if it is this machine."""
    if name == LOCAL.name:
        raise UserError(
            "home_sync is installed on this machine together with yurt",
            code="usage",
            hint="name a context, for example: `yurt home install alpha`",
        )
    place = Place(name, config.load() or config.Homes())
    _ = place.host  # NotFoundError or UserError if it has no login host
    return place


@verb(examples=["yurt home install alpha", "yurt home install alpha --remove"], context_help="")
@argument("name", metavar="CONTEXT", shell_complete=context_names)
@option("--remove", is_flag=True, help="Remove the command from the login host.")
def install_command(name: str, remove: bool) -> int:
    """Install the command home_sync on a login host.

    Writes ~/.local/bin/home_sync on the login host of CONTEXT. It is a shell script that syncs the home there with the
    other homes that the login host reaches by ssh, at the addresses in homes.yaml. It uses the same profile, lock and
    backups as yurt, and releases jobs that wait for a home sync. It needs Unison, but neither yurt nor Python. Install
    it again after changes to homes.yaml.
    """

    found = remove_from(name) if remove else put(name)

    def print_text() -> None:
        done = found.data
        if not remove:
            print(render.plain(f"{done.path} on {name} syncs with {', '.join(done.places)}"))
        else:
            print(render.plain(f"removed {done.path} from {name}" if done.path else f"{name} has no home_sync"))

    return render.result(found, print_text)
