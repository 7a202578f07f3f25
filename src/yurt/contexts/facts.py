"""Facts about a context's site: from the cache, or from a new probe."""

from __future__ import annotations

import time
from typing import Any

from yurt.backends.kinds import SLURM, kind_of
from yurt.backends.registry import host_of
from yurt.clocks import clocks
from yurt.config import facts as cache
from yurt.errors import RefusedError, UnreachableError, UserError, no_kubernetes
from yurt.model.context import Context
from yurt.model.facts import Facts
from yurt.model.progress import Event, Watch, unwatched
from yurt.transport.base import refusal

INTERNET = "example.com:443"


def facts_of(context: Context, *, watch: Watch = unwatched) -> Facts:
    """Return facts not older than a week; probe the site if none are cached."""
    cached = cache.load(context)
    return cached if cached is not None else ask(context, watch=watch)


def facts_if_probed(context: Context, *, watch: Watch = unwatched) -> Facts | None:
    """Return the same for context types that are probed; None for others."""
    return facts_of(context, watch=watch) if kind_of(context.type).probed else None


def ask(context: Context, *, watch: Watch = unwatched) -> Facts:
    """Probe a site in one round trip and cache the facts. Facts of an earlier deep probe are kept."""
    _check_type(context)
    watch(Event(f"probing {context.name}"))
    found = probe(context)
    earlier = cache.load(context)
    if earlier is not None and earlier.node is not None and found.probed_at - earlier.node.probed_at < cache.WEEK:
        found = _with(found, node=earlier.node)
    if earlier is not None and found.accounting_silent:
        found = _with(found, accounts=earlier.accounts, qos=earlier.qos)
    cache.save(context, found)
    return found


def probe(context: Context) -> Facts:
    """Probe a site without caching the facts. UnreachableError if the Slurm controller does not respond."""
    from yurt.backends.slurm import probe as script

    host, slurm = host_of(context), kind_of(context.type).scheduler

    mark = script.new_mark()
    answer = host.run(script.script(), mark, timeout=120)
    if answer.code == script.SILENT and slurm:
        if answer.seconds >= min(clocks().slow, clocks().again):
            host.note_silent(SLURM)
        lines = answer.errors.splitlines()[-1:] or ["no error message"]
        raise UnreachableError(
            f"{host.name}: Slurm does not respond: {lines[0]}",
            code="slurm-not-responding",
            hint="the controller may be down; run the command again later",
        )
    with host.reading():
        return script.read(mark, answer.text, now=time.time())


def ask_node(context: Context, *, internet: str = INTERNET, patience: int = 120, watch: Watch = unwatched) -> Facts:
    """Probe a site and then, with a job of a few seconds, one of its compute nodes."""
    from yurt.backends.slurm import deep_probe, probe

    target, colon, port = internet.rpartition(":")
    if not colon or not port.isdigit() or not target:
        raise UserError(
            f"--internet: '{internet}' is not HOST:PORT", code="usage", hint=f"for example: `--internet {INTERNET}`"
        )
    found = ask(context, watch=watch)
    if not found.slurm_version:
        raise UserError(
            f"--deep needs Slurm, which context '{context.name}' does not have",
            code="usage",
            hint=f"run `yurt context probe {context.name}` without `--deep`",
        )
    watch(Event(f"waiting for a compute node of {context.name}"))
    folder = storage_folder(context, found)
    options = [f"--partition={context.partition}"] if context.partition else []
    options += [f"--account={context.account}"] if context.account else []
    options += [f"--qos={context.qos}"] if context.qos else []
    mark = probe.new_mark()
    arguments = [mark, folder, target, port, str(patience), *options]
    host = host_of(context)
    answer = host.run(deep_probe.script(), *arguments, timeout=patience + 60)
    if answer.code == deep_probe.PENDING:
        reason = answer.errors or "no reason given"
        raise RefusedError(
            f"{context.name}: the probe job did not start within {patience} s: {reason}",
            code="site-busy",
            hint=f"try again later, or set another partition with `yurt context edit {context.name}`",
        )
    if answer.code:
        raise refusal(context.name, "the probe job was rejected", answer.errors)
    with host.reading():
        found = _with(found, node=deep_probe.read(mark, answer.text, now=time.time()))
    cache.save(context, found)
    return found


def storage_folder(context: Context, facts: Facts) -> str:
    """Return yurt's storage folder on a site: storage_dir, expanded there, else scratch, else home."""
    scratch = next((tier.path for tier in facts.tiers if tier.name == "scratch" and tier.writable), "~")
    try:
        found = facts.expand(context.storage_dir or scratch)
        if found.startswith("/"):
            return found
        raise UserError(
            f"storage_dir of context '{context.name}' is not an absolute path: '{found}'",
            code="config-invalid",
            hint=f"use a path such as `$HOME/runs`; change it with `yurt context edit {context.name}`",
        )
    except KeyError as error:
        variable = error.args[0]
        raise UserError(
            f"storage_dir of context '{context.name}' uses ${variable}, which is not set on the site",
            code="config-invalid",
            hint=f"change it with `yurt context edit {context.name}`",
        ) from None


def cautions(facts: Facts) -> list[str]:
    """Return what a user must know about the version of a site's Slurm."""
    from yurt.backends.slurm.versions import caution

    text = caution(facts.slurm_version)
    return [text] if text else []


def _with(facts: Facts, **changes: Any) -> Facts:
    import msgspec

    return msgspec.structs.replace(facts, **changes)


def _check_type(context: Context) -> None:
    if not kind_of(context.type).has_host:
        raise no_kubernetes(context.name)


def internet_of_nodes(context: Context, facts: Facts) -> bool | None:
    """Whether compute nodes reach the internet: by the last deep probe, else by the site's profile; None: unknown."""
    if facts.node is not None:
        return facts.node.internet
    if context.profile is None:
        return None
    from yurt.contexts import profiles

    known = profiles.named(context.profile)
    return None if known is None else known.profile.internet
