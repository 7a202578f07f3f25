"""The command `home_sync` for a login host: one sh script, which needs neither yurt nor Python there."""

from __future__ import annotations

import os
import shlex

import msgspec

from yurt.errors import RefusedError, UserError
from yurt.homes import client, deletions, profile, scripts
from yurt.homes.client import Start
from yurt.homes.config import Homes
from yurt.homes.places import Pair, Place
from yurt.model.context import LOCAL
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
