"""home install: put the command `home_sync` on a login host, or remove it."""

from __future__ import annotations

import os
import shlex

import msgspec

from yurt.cli import render
from yurt.cli.completers import context_names
from yurt.cli.declare import argument, option, verb
from yurt.errors import RefusedError, UserError
from yurt.homes import client, config, deletions, profile, scripts
from yurt.homes.client import Start
from yurt.homes.config import Homes
from yurt.homes.places import Pair, Place
from yurt.model.context import LOCAL
from yurt.model.result import Result
from yurt.transport.ssh import SshHost

TOKEN, STAMP, CHECK = "@TOKEN!!", "@STAMP_OF_SYNC!!", "@CHECK!!"
"""What home_sync.sh replaces in the scripts: texts as long as a token, a time, and a word for sure_check."""

HEAD = """\
#!/bin/sh
# Syncs this home with others. Written by `yurt home install {name}`: run that again to change it.
"""

PUT = """\
umask 077
file=$HOME/.local/bin/home_sync
mkdir -p -- "${file%/*}" && cat > "$file.$$" && chmod 700 "$file.$$" && mv -f -- "$file.$$" "$file" || exit 1
printf '%s\\n' "$file"
exec 3>&1 > /dev/null 2>&1 < /dev/null
searched=$(timeout 10 "${SHELL:-/bin/sh}" -lc 'printf "\\nPATH=%s\\n" "$PATH"' | sed -n 's/^PATH=//p' | tail -n 1)
printf '%s\\n' "$searched" >&3
for each; do
  timeout 20 ssh -T -o BatchMode=yes -o ConnectTimeout=10 "$each" true || printf '%s\\n' "$each" >&3
done
"""

REMOVE = """\
file=$HOME/.local/bin/home_sync
[ -e "$file" ] || exit 3
head -n 2 "$file" | grep -q 'Written by `yurt home install' || exit 4
rm -f -- "$file" && printf '%s\\n' "$file"
"""


def addresses(homes: Homes, hub: Place) -> dict[str, str]:
    """Return how a login host reaches the other places, as homes.yaml says. UserError if it reaches none.

    If the login host is the hub, the address of a context is used for a place without one.
    """
    found: dict[str, str] = {}
    for name in homes.names:
        if name in (LOCAL.name, hub.name):
            continue
        place = Place(name, homes)
        address = place.settings.address
        if not address and homes.hub == hub.name and isinstance(place.host, SshHost):
            address = place.host.destination
        if address:
            found[name] = address
    if not found:
        other = next((name for name in homes.names if name not in (LOCAL.name, hub.name)), "")
        entry = f"places: {{{other}: {{address: ADDRESS}}}}"
        set_it = f"if `ssh ADDRESS` there reaches {other}, set `{entry}` in homes.yaml"
        raise UserError(
            f"homes.yaml names no place that the login host of {hub.name} reaches",
            code="usage",
            hint=set_it if other else "add another home with `yurt home sync CONTEXT`",
        )
    return found


def text(homes: Homes, hub: Place, reached: dict[str, str], rules: str = "") -> str:
    """Return the script `home_sync` for a login host.

    `reached` are the addresses of the other places, `rules` the text of the profile.
    """
    parts = [HEAD.format(name=hub.name), scripts.assign(hub=hub.name, count=str(len(reached)))]
    parts.append(scripts.assign(keep=str(homes.keep_seconds), quoted_backups=shlex.quote(homes.backups)))
    parts.append(scripts.assign(finish=scripts.finish(), quoted_root=shlex.quote(hub.folder.removeprefix("~/"))))
    limits = {"most": deletions.MOST, "large_home": deletions.LARGE_HOME, "share": deletions.SHARE}
    parts.append(scripts.assign(**{name: str(value) for name, value in limits.items()}))
    parts.append(scripts.assign(count_files=deletions.script(rules)))
    for number, (name, address) in enumerate(reached.items(), 1):
        pair = Pair(hub, Place(name, homes))
        ssh = ["ssh", "-T", *client.KEEP_ALIVE, address]
        record = client.record(pair, "login")
        roots = {f"quoted_root_{number}": shlex.quote(pair.spoke.folder.removeprefix("~/"))}
        parts.append(scripts.assign(**{f"name_{number}": name, f"client_{number}": _client(pair, ssh)}, **roots))
        parts.append(scripts.assign(**{f"record_{number}": record}))
        quiet = ["ssh", "-T", "-o", "LogLevel=ERROR", address]  # its first connection has shown the banner
        parts.append(f"reach_{number}() {{ {shlex.join(quiet)} sh; }}\n")
    return "".join(parts) + scripts.text("home_sync.sh")


def _client(pair: Pair, ssh: list[str]) -> str:
    """Return the script of the client side of a pair, with placeholders for its token and its time."""
    mark = f"yurt-begin-{os.urandom(8).hex()}"
    here, there = _start(f"login-{TOKEN}", pair), _start(f"login-{pair.hub.name}", pair)
    link = scripts.link(ssh, _side(pair, pair.spoke, there), mark)
    return scripts.client(
        _side(pair, pair.hub, here),
        locked=False,
        link=link,
        profile=pair.hub.homes.profile,
        server_root=client.unison_root(pair, pair.spoke),
    )


def _side(pair: Pair, place: Place, start: Start) -> scripts.Side:
    record = client.record(pair, "login")
    return msgspec.structs.replace(client.side(pair, place, start), record=record, check=CHECK, here=False)


def _start(identity: str, pair: Pair) -> Start:
    """Return a start of the login host. Only the other side may end what a lost connection of this identity left."""
    return Start(identity=identity, name=pair.hub.name, lock=-1, stamp=STAMP, token=TOKEN, direct=True)


def install(homes: Homes, hub: Place) -> tuple[str, bool, list[str]]:
    """Write `~/.local/bin/home_sync` and the profile on a login host.

    Return its path, whether its folder is on PATH, and the places that the login host could not reach just now.
    """
    reached = addresses(homes, hub)
    rules = profile.ensure(hub).decode(errors="surrogateescape")
    content = text(homes, hub, reached, rules).encode(errors="surrogateescape")
    answer = hub.run(PUT, *reached.values(), stdin=content, timeout=90)
    if answer.code:
        raise RefusedError(f"{hub.name}: cannot write ~/.local/bin/home_sync: {answer.errors}", code="site-refused")
    path, searched, *silent = [*os.fsdecode(answer.out).splitlines(), "", ""]
    on_path = path.rpartition("/")[0] in searched.split(":")
    return path, on_path, [name for name, address in reached.items() if address in silent]


def remove(hub: Place) -> str:
    """Remove `home_sync` from a login host; return its path, or an empty text if there is none.

    RefusedError: the file there is not yurt's.
    """
    answer = hub.run(REMOVE)
    if answer.code == 4:
        raise RefusedError(
            f"{hub.name}: ~/.local/bin/home_sync was not written by yurt, and is not removed", code="site-refused"
        )
    return "" if answer.code else os.fsdecode(answer.out).strip()


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
    path, on_path, silent = install(homes, hub)
    warnings = [
        f"ssh from {name} to {each} does not work without a password; set up a key for it there" for each in silent
    ]
    if not on_path:
        warnings.append(f"~/.local/bin is not on the PATH of {name}; add it in your profile there, or type `{path}`")
    places = list(addresses(homes, hub))
    data = Installed(context=name, path=path, places=places)
    return Result(kind="home-installed", data=data, warnings=warnings)


def remove_from(name: str) -> Result[Installed]:
    """Remove `home_sync` from the login host of a context."""
    path = remove(_place(name))
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
