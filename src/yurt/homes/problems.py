"""Why a sync failed: turns the last words of Unison, of the two sides and of ssh into an error."""

from __future__ import annotations

import re

from yurt.errors import RefusedError, UnreachableError, YurtError
from yurt.homes import here, programs
from yurt.homes.client import Finished, address_from_hub
from yurt.homes.output import Side
from yurt.homes.places import Pair
from yurt.model.context import LOCAL
from yurt.transport import ssh_errors
from yurt.transport.ssh import SshHost

LONGEST = 200
AGAIN = "run `yurt home sync` again; it continues where this one stopped"
EMPTIED = re.compile(rb"The following paths have been completely emptied in one replica:\s+(.+?)\n", re.DOTALL)
_FULL = re.compile("No space left on device|quota exceeded|saving archive", re.IGNORECASE)
_MOUNT = re.compile(r"Path (.+)/\.yurt-home is designated as a mountpoint, .* on host yurt-(\S+)")


def problem(pair: Pair, done: Finished) -> YurtError:
    """Return the error for a Unison that did not reach its end."""
    refused = next((each for each in done.printed.sides if each.word != "begun"), None)
    if refused is not None:
        return _refusal(pair, refused)
    fatal = done.printed.fatal
    if found := _MOUNT.search(fatal):
        place = "local" if found[2].startswith("local") else found[2]
        return _vanished(place, found[1])
    if emptied := EMPTIED.search(done.err):
        what = " ".join(emptied[1].decode(errors="replace").split())
        return RefusedError(
            f"{pair.name}: everything in {what} is gone on one side, so nothing was synced",
            code="home-vanished",
            hint="mount the disk, or bring the files back with `yurt home sync --refill PLACE`, the place that lost "
            "them; if you did delete everything, run `home_sync -batch -confirmbigdel=false`",
        )
    reached = any(each.place == pair.server.name for each in done.printed.sides)
    lost = "Lost connection" in fatal
    if lost and not reached:
        return _not_reached(pair, done)
    if lost or done.code < 0 or done.code > 128:
        who = "lost connection" if lost else "Unison was killed"
        return UnreachableError(
            f"{pair.server.name}: {who} during the sync; nothing is lost", code="connection-lost", hint=AGAIN
        )
    return _failed(pair, fatal or f"exit code {done.code}")


def _failed(pair: Pair, why: str) -> RefusedError:
    """Return the error for a Unison that gave up."""
    if _FULL.search(why):
        return RefusedError(
            f"{pair.name}: Unison could not write its files, so a disk or quota may be full; nothing is lost",
            code="home-sync-failed",
            hint=f"make room for ~/.unison and the home, here and on {pair.server.name}, and sync again",
        )
    short = why if len(why) <= LONGEST else why[:LONGEST] + "…"
    return RefusedError(f"{pair.name}: Unison failed: {short}", code="home-sync-failed")


def _refusal(pair: Pair, said: Side) -> YurtError:
    place = next((each for each in pair.places if each.name == said.place), pair.client)
    name = "this machine" if place.here else place.name
    if said.word == "locked":
        stamp, _, who = said.text.partition(" ")
        return here.busy(name, stamp, who)
    if said.word in ("no-unison", "old-unison", "old-protocol"):
        old = "its protocol" if said.word == "old-protocol" else said.text
        return programs.missing_here(old) if place.here else programs.missing(place, old, "")
    if said.word == "vanished":
        return _vanished(said.place, said.text)
    if said.word == "emptied":
        return RefusedError(
            f"{name}: {said.text} has no files any more, so its disk may not be mounted; nothing was synced",
            code="home-vanished",
            hint=f"mount it, or bring the files back with `yurt home sync --refill {said.place}`; if you deleted "
            f"everything yourself, run `: > {said.text}/.yurt-home` there",
        )
    if said.word == "no-flock":
        return RefusedError(f"{name} has no program `flock`, which keeps two syncs apart", code="site-refused")
    return RefusedError(
        f"{name}: cannot use the folder {said.text}: it cannot be created, read or written, or belongs to another user",
        code="site-refused",
        hint="choose another root in homes.yaml, or correct its permissions",
    )


def _vanished(place: str, root: str) -> RefusedError:
    name = "this machine" if place == LOCAL.name else place
    return RefusedError(
        f"{name}: {root} has lost its file .yurt-home, so its disk may not be mounted; nothing was synced",
        code="home-vanished",
        hint=f"mount it; if the folder is complete, run `echo files > {root}/.yurt-home` there; if it is lost, "
        f"`yurt home sync --refill {place}` copies its files again",
    )


def _not_reached(pair: Pair, done: Finished) -> YurtError:
    """Return the error for a server side that did not start: ssh failed."""
    text = re.sub(r"(?m)^(Fatal error: )?Lost connection with the server.*\n?", "", done.err.decode(errors="replace"))
    host = pair.server.host
    if pair.client.here:
        address = host.destination if isinstance(host, SshHost) else pair.server.name
        return ssh_errors.classify(pair.server.name, address, text)
    error = ssh_errors.classify(pair.server.name, address_from_hub(pair), text)
    error.message = f"{pair.hub.name} cannot reach {error.message}"
    error.hint = (
        f"try `ssh -o BatchMode=yes {address_from_hub(pair)}` on {pair.hub.name}; its key must be authorized on "
        f"{pair.server.name}, and `address` in homes.yaml must be correct"
    )
    return error
