"""context profiles: the site profiles that yurt knows, and the one that a user names for a new context."""

from __future__ import annotations

import contextlib
import datetime
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from yurt.cli import render
from yurt.cli.ask import confirm
from yurt.cli.declare import argument, verb
from yurt.contexts import profiles
from yurt.contexts.profiles import obtain
from yurt.contexts.profiles.find import Known
from yurt.errors import UserError
from yurt.model.result import Result

if TYPE_CHECKING:
    from yurt.contexts.profiles.apply import Applied
    from yurt.contexts.profiles.find import Known
    from yurt.model.profile import Profile, Source


class ProfileListed(msgspec.Struct, frozen=True):
    """One profile in the list."""

    name: str
    """Name of the profile."""
    title: str
    """Name of the cluster, and who runs it."""
    origin: str
    """Where the profile comes from: `yurt`, a file, an address or a package."""
    read: datetime.date
    """When the newest of its sources was read."""


def list_() -> Result[list[ProfileListed]]:
    """List all profiles by name. Invalid files are warnings."""
    found, warnings = profiles.every()
    rows = [ProfileListed(each.profile.name, each.profile.title, each.origin, each.profile.read) for each in found]
    return Result(kind="profiles", data=sorted(rows, key=lambda each: each.name), warnings=warnings)


def show(name: str) -> Result[Known]:
    """Return one profile, by its name, file or address. Errors as in `yurt.contexts.profiles.obtain`."""
    known, _text = obtain.obtain(name)
    return Result(kind="profile", data=known)


def choose(named: str, confirmed: Callable[[Known], bool]) -> Known:
    """Return the profile that the user names for a new context; save it if it comes from a file or an address.

    UserError if a downloaded profile is not `confirmed`; nothing is saved.
    """
    known, text = obtain.obtain(named)
    if not text:
        return known
    if obtain.is_address(named) and not confirmed(known):
        raise UserError(
            f"the profile from {named} is not confirmed",
            code="not-confirmed",
            hint=f"look at it with `yurt context profiles {named}`; if you trust it, add `--yes`",
        )
    obtain.save(known, text)
    return known


ROOM = 16
"""Width of the labels."""


@verb(examples=["yurt context profiles", "yurt context profiles narval"], context_help="")
@argument("name", metavar="[NAME]", required=False, default="")
def profiles_command(name: str) -> None:
    """List site profiles, or show one.

    A profile is what the public documentation of a cluster says about storage, internet access and accounts. `yurt
    context add` uses it to complete a new context. NAME can also be a file or an https address.
    """

    if name:
        shown = show(name)
        render.result(shown, lambda: print_profile(shown.data), requested=True)
        return
    found = list_()
    rows = [[each.name, each.title, each.origin, str(each.read)] for each in found.data]
    columns = ["name", "site", "from", "read"]
    render.result(found, lambda: render.table(columns, rows, folds=["site", "from"]), requested=True)


def print_profile(known: Known) -> None:
    """Print all of a profile, with its sources."""
    _print_title(known)
    for label, text in lines(known.profile):
        render.fact(label, text, ROOM)
    _print_keys(known.profile.context)
    for each in known.profile.sources:
        _print_source(each)


def print_applied(applied: Applied) -> None:
    """Print what a profile contributed to a new context, and what users of the site must know."""
    known, first = applied.known, applied.known.profile.sources[0]
    _print_title(known)
    _print_keys(applied.filled)
    for label, text in lines(known.profile):
        if label in ("internet", "account", "jobs", "note"):
            render.fact(label, text, ROOM)
    for text in known.profile.purge_lines():
        render.fact("purge", text, ROOM)
    for text in applied.differences:
        render.fact("differs", f"{text} (found by the probe, which takes precedence)", ROOM)
    _print_source(first)
    print(f"{'more':{ROOM}}yurt context profiles {known.profile.name}")


def _print_title(known: Known) -> None:
    origin = "" if known.origin == "yurt" else f", from {known.origin}"
    print(render.plain(f"profile {known.profile.name}: {known.profile.title}{origin}"))


def _print_keys(keys: Mapping[str, Any]) -> None:
    for key, value in keys.items():
        text = ", ".join(value) if isinstance(value, list | tuple) else render.value(value)
        render.fact("sets", f"{key}: {text}", ROOM)


def _print_source(source: Source) -> None:
    note = f", {source.note}" if source.note else ""
    render.fact("source", f"{source.url} (read {source.read}{note})", ROOM)


def obtain_profile(named: str, *, yes: bool, interactive: bool) -> Known:
    """Return the profile that --profile names, and save a new one. A downloaded one is shown, and the user asked."""

    def confirmed(known: Known) -> bool:
        if yes or not interactive:
            return yes
        with contextlib.redirect_stdout(sys.stderr):
            print_profile(known)
        return confirm("use this profile?", default=False)

    return choose(named, confirmed)


def lines(profile: Profile) -> Iterator[tuple[str, str]]:
    """Yield what a profile says: a label and a text for each line."""
    if profile.documentation:
        yield "documentation", profile.documentation
    login = profile.login
    login_facts = [
        "asks for a second factor" if login.second_factor else "",
        f"port {login.port}" if login.port else "",
        login.note or "",
    ]
    yield from _line("login", login_facts)
    yield from _line("public key", [f"register it at {login.keys_url}" if login.keys_url else ""])
    for name, area in profile.storage.items():
        purge = f"{area.purge.rule} for {area.purge.days} days are deleted" if area.purge else ""
        backup = {True: "backed up", False: "no backup", None: ""}[area.backed_up]
        variable = f"${area.variable}" if area.variable else ""
        yield from _line(name, [variable, area.purpose or "", area.quota or "", backup, purge])
    access = {True: "compute nodes have access", False: "compute nodes have no access", None: ""}[profile.internet]
    yield from _line("internet", [access, profile.internet_note or ""])
    accounts = profile.accounts
    required = {True: "required", False: "optional", None: ""}[accounts.required]
    yield from _line("account", [required, ", ".join(accounts.patterns), accounts.note or ""])
    jobs = profile.jobs
    job_facts = [
        f"at least {jobs.min_time}" if jobs.min_time else "",
        f"at most {jobs.max_time}" if jobs.max_time else "",
        f"at most {jobs.max_submitted} in the queue" if jobs.max_submitted else "",
        "not from the home folder" if jobs.from_home is False else "",
        "the site chooses the partition" if jobs.name_partition is False else "",
        jobs.note or "",
    ]
    yield from _line("jobs", job_facts)
    yield from _line("modules", [f"{name}: {module}" for name, module in profile.modules.items()])
    for name, text in profile.partitions.items():
        yield f"-p {name}", text
    for note in profile.notes:
        yield "note", note


def _line(label: str, parts: list[str]) -> Iterator[tuple[str, str]]:
    text = "; ".join(part for part in parts if part)
    if text:
        yield label, text
