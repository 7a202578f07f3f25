"""The places whose homes are kept in sync: this machine and the login hosts of contexts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path

from yurt.clocks import clocks
from yurt.config import contexts
from yurt.contexts import connect
from yurt.errors import RefusedError, UserError
from yurt.homes.config import Homes
from yurt.homes.outcomes import pair_name
from yurt.model.context import LOCAL
from yurt.model.site_words import SitePath
from yurt.transport.base import Answer, Host
from yurt.transport.local import LocalHost

TIMEOUT = 60.0

FIND_ROOT = """\
cd || exit
if [ -n "$1" ] && [ ! -e "$1" ]; then
    case $1 in
    /*) printf '%s\n' "$1" ;;
    *) printf '%s\n' "$(pwd -P)/$1" ;;
    esac
    exit
fi
if [ -n "$1" ]; then
    cd -- "$1" || exit
fi
pwd -P
"""


class Place:
    """A home: this machine's folder, or the home on the login host of a context."""

    def __init__(self, name: str, homes: Homes) -> None:
        self.name = name
        self.homes = homes
        self.settings = homes.settings(name)
        self.here = name == LOCAL.name

    @cached_property
    def host(self) -> Host:
        """The host that runs this place's commands. NotFoundError or UserError if the context cannot be used."""
        if self.here:
            return LocalHost()
        found = connect.ssh_host(contexts.site(self.name))
        if found is None:
            raise UserError(
                f"context '{self.name}' runs on this machine, so its home is not another place",
                code="usage",
                hint="name contexts with a login host, for example: `yurt home sync alpha`",
            )
        return found

    @property
    def folder(self) -> str:
        """The root as configured: absolute, or below the home; empty: the home itself."""
        return str(Path(self.homes.folder).expanduser().absolute()) if self.here else self.settings.root

    @cached_property
    def root(self) -> str:
        """The root, absolute and without symbolic links, as this side knows it. Asks the login host once.

        It may not exist before the first sync. RefusedError if it cannot be used.
        """
        if self.here:
            return str(Path(self.folder).resolve())
        answer = self.run(FIND_ROOT, self.folder.removeprefix("~/"))
        if answer.code:
            raise RefusedError(
                f"{self.name}: cannot use '{self.folder or '~'}' as the root: {answer.errors}",
                code="site-refused",
                hint="correct `root` of this place in homes.yaml",
            )
        return SitePath(answer.out.decode(errors="surrogateescape").removesuffix("\n"), self.name)

    def run(self, script: str, *args: str, stdin: bytes = b"", timeout: float = TIMEOUT) -> Answer:
        """Run a script with sh on this place, in one operation. UnreachableError if no answer arrives."""
        return self.host.run(script, *args, stdin=stdin, timeout=timeout)


class Pair:
    """The hub and one spoke."""

    def __init__(self, hub: Place, spoke: Place) -> None:
        self.hub, self.spoke = hub, spoke

    @property
    def name(self) -> str:
        return pair_name(self.hub.name, self.spoke.name)

    @property
    def client(self) -> Place:
        """The place on which Unison runs as the client: this machine if it is one of the pair, else the hub."""
        return self.spoke if self.spoke.here else self.hub

    @property
    def server(self) -> Place:
        return self.hub if self.client is self.spoke else self.spoke

    @property
    def places(self) -> tuple[Place, Place]:
        return self.hub, self.spoke


def ready(some: Iterable[Place]) -> None:
    """Prepare what threads use of places. May raise YurtError.

    msgspec analyses a type when it first decodes one, and crashes if two threads do that at the same time.
    """
    clocks()
    for place in some:
        _ = place.host


def all_places(homes: Homes) -> list[Place]:
    """Return every place, the hub first."""
    return [Place(name, homes) for name in homes.names]


def pairs(homes: Homes, only: Sequence[str] = ()) -> list[Pair]:
    """Return the pairs of hub and spoke; `only` the pairs of these places. UserError if one of them is no place."""
    hub, *spokes = all_places(homes)
    unknown = [name for name in only if name not in homes.names]
    if unknown:
        raise UserError(
            f"'{unknown[0]}' is not one of the places in sync: {', '.join(homes.names)}",
            code="usage",
            hint=f"add it with `yurt home sync {unknown[0]}`",
        )
    wanted = {name for name in only if name != homes.hub}
    return [Pair(hub, spoke) for spoke in spokes if not wanted or spoke.name in wanted]
