"""Amounts and limits of a site in words. Pure."""

from __future__ import annotations

from yurt.model.facts import Facts
from yurt.model.run import Resources
from yurt.model.waiting import SiteLimit, WaitingJob

_NAMES = {
    "cpu": ("CPU", "CPUs"),
    "node": ("node", "nodes"),
    "gres/gpu": ("GPU", "GPUs"),
    "billing": ("billing unit", "billing units"),
    "jobs": ("running job", "running jobs"),
    "submitted": ("submitted job", "submitted jobs"),
}


def memory(amount: float) -> str:
    """Return an amount of memory in MB, as in `2.4 GB`."""
    return f"{amount / 1024:.3g} GB" if amount >= 1024 else f"{amount:.0f} MB"


def time(minutes: float) -> str:
    """Return a time limit, exactly: `30 min`, `1 h 30 min`, `2 days`."""
    left, parts = round(minutes), []
    for unit, size in (("day", 1440), ("h", 60), ("min", 1)):
        count, left = divmod(left, size)
        if count:
            parts.append(f"{count} {unit}{'s' if unit == 'day' and count > 1 else ''}")
    return " ".join(parts) or "0 min"


def words(limit: SiteLimit, job: WaitingJob | None) -> str:
    """Return a limit with its values, as in `QOS normal: at most 4 running jobs for each user; you have 4`."""
    wanted = None if job is None else _requested(limit, job)
    own = f"this run asks for {_amount(limit, wanted)}" if wanted is not None else ""
    if limit.resource == "time" and limit.each == "job":
        return f"{limit.owner} allows {time(limit.value)}" + (f"; {own}" if own else "")
    most = f"at {'least' if limit.at_least else 'most'} {_amount(limit, limit.value)}"
    scope = {"job": " for each job", "node": " on each node", "user": " for each user"}.get(limit.each, "")
    scope = f" for account {job.account}" if limit.each == "account" and job is not None else scope
    facts = [_used(limit), own]
    tail = ", ".join(each for each in facts if each)
    return f"{limit.owner}: {most}{scope}" + (f"; {tail}" if tail else "")


def submit_limits(resources: Resources, facts: Facts | None) -> list[str]:
    """Return how many jobs the account and the QOS of a run allow a user to submit, as in `words`."""
    if facts is None:
        return []
    accounts = [each for each in facts.accounts if each.name == resources.account] or [
        each for each in facts.accounts if each.default
    ]
    names = [resources.qos] if resources.qos else [each.default_qos for each in accounts]
    most = [(f"account {each.name}", each.max_submit) for each in accounts]
    most += [(f"QOS {each.name}", each.max_submit) for each in facts.qos if each.name in names]
    limits = [SiteLimit(owner=owner, each="user", resource="submitted", value=value) for owner, value in most if value]
    return [words(each, None) for each in limits]


def _used(limit: SiteLimit) -> str:
    if limit.used is None or limit.at_least:
        return ""
    amount = _amount(limit, limit.used)
    if limit.resource in ("jobs", "submitted"):
        amount = f"{limit.used:.0f} {'running' if limit.resource == 'jobs' else 'submitted'}"
    if limit.each == "user":
        return f"you have {amount}"
    return f"{amount} {'used' if limit.minutes == 'all' else 'in use'}"


def _requested(limit: SiteLimit, job: WaitingJob) -> float | None:
    """Return what a job asks for of what is limited; None if that says nothing."""
    if limit.resource in ("jobs", "submitted"):
        return None
    amount = job.minutes if limit.resource == "time" else job.requests.get(limit.resource)
    if amount is None:
        return None
    if limit.minutes and limit.resource != "time":
        return amount * job.minutes if job.minutes is not None else None
    return amount / max(job.requests.get("node", 1), 1) if limit.each == "node" else amount


def _amount(limit: SiteLimit, value: float) -> str:
    if limit.resource == "time":
        return time(value)
    if limit.minutes:
        name = _NAMES.get(limit.resource, (limit.resource, ""))[0] if limit.resource != "mem" else "MB of memory"
        return f"{value:,.0f} {name} minutes".replace(",", " ")
    if limit.resource == "mem":
        return memory(value)
    one, many = _NAMES.get(limit.resource, (f"of {limit.resource}", f"of {limit.resource}"))
    return f"{value:g} {one if value == 1 else many}"
