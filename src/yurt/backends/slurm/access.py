"""Decides from the site's lists whether a user may submit to a partition or use a reservation. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from yurt.model.facts import Account

OPEN = ("ALL", "(null)", "")
STATES = {
    "DOWN": "it is down: jobs stay pending",
    "DRAIN": "it accepts no new jobs",
    "INACTIVE": "it is inactive",
}


class Person:
    """A user with the groups, accounts and QOS that the site's lists name; accounts are empty if unknown.

    `host` is the login node.
    """

    def __init__(self, user: str, groups: Sequence[str], accounts: Sequence[Account], host: str = "") -> None:
        self.user, self.groups, self.host = user, set(groups), host.partition(".")[0]
        self.accounts = {each.name for each in accounts}
        self.qos = {qos for each in accounts for qos in each.qos}


def why_not(partition: Mapping[str, str], person: Person) -> str:
    """Return why the user cannot use a partition; empty if nothing speaks against it."""
    if reason := STATES.get(partition.get("State", "UP")):
        return reason
    if partition.get("RootOnly") == "YES":
        return "only root may use it"
    if partition.get("ReqResv") == "YES":
        return "it requires a reservation"
    for key, own, noun in (
        ("Groups", person.groups, "group"),
        ("Accounts", person.accounts, "account"),
        ("Qos", person.qos, "QOS"),
    ):
        if not own:
            continue
        allowed, denied = _names(partition.get(f"Allow{key}", "")), _names(partition.get(f"Deny{key}", ""))
        if allowed and not allowed & own:
            return f"only for {noun} {_some(allowed)}"
        if denied and own <= denied:
            return f"closed to {noun} {_some(own)}"
    hosts = _names(partition.get("AllocNodes", ""))
    if "[" in "".join(hosts) or not person.host or person.host in hosts:
        hosts = set()
    return f"only for jobs that are submitted on {_some(hosts)}" if hosts else ""


def reservation_is_open(reservation: Mapping[str, str], person: Person) -> bool:
    """Return whether the users, accounts or groups of a reservation include the user; -NAME excludes."""
    users, accounts, groups = (_names(reservation.get(key, "")) for key in ("Users", "Accounts", "Groups"))
    if f"-{person.user}" in users or {f"-{each}" for each in person.accounts} & accounts:
        return False
    excludes = [each for each in users | accounts if each.startswith("-")]
    return bool(excludes) or person.user in users or bool(person.accounts & accounts or person.groups & groups)


def _names(text: str) -> set[str]:
    return set() if text in OPEN else set(text.split(","))


def _some(names: set[str]) -> str:
    shown = sorted(names)
    return " or ".join(shown) if len(shown) < 4 else f"{', '.join(shown[:3])} or {len(shown) - 3} others"
