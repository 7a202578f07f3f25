"""context add: connect to a site, look at it, and propose a complete context."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from yurt.backends.kinds import kind_of
from yurt.config import contexts
from yurt.config import facts as kept
from yurt.errors import RefusedError, UnreachableError, UserError
from yurt.model.context import Context, ContextsFile
from yurt.model.facts import Facts
from yurt.model.progress import Event, Watch, unwatched
from yurt.sites.connect import ssh_host
from yurt.sites.facts import probe
from yurt.verbs.result import Result

Ask = Callable[[str, Sequence[str]], str]
"""Puts a question with its possible answers to the person; there only if there is a person."""

NEED_PERSON = ("ssh-login-required", "ssh-key-unknown", "ssh-denied")


class Added(msgspec.Struct, frozen=True):
    """`facts` is None if the site was not asked."""

    context: Context
    facts: Facts | None
    current: bool


def add(
    wanted: Context, *, look: bool = True, use: bool = False, ask: Ask | None = None, watch: Watch = unwatched
) -> Result[Added]:
    """Write a new context: what `wanted` says, completed from what its site says.

    With a person there (`ask`), ssh may prompt for the first connection, and what cannot be found
    out is asked. Nothing is written unless the site could be asked, or `look` is False.
    """
    file = contexts.default_file()
    known = contexts.load(file)
    if wanted.name in known.contexts:
        raise UserError(
            f"there is a context '{wanted.name}' already",
            code="context-exists",
            hint=f"yurt context edit {wanted.name}, or choose another name",
        )
    facts = _facts(wanted, ask, watch) if look and kind_of(wanted.type).probed else None
    context = complete(wanted, facts, ask) if facts is not None else wanted
    contexts.merge(file, ContextsFile({context.name: context}))
    current = use or (known.current_context is None and not kind_of(context.type).here)
    if current:
        contexts.use(file, context.name)
    if facts is not None:
        kept.save(context, facts)
    return Result(kind="context-added", data=Added(context, facts, current))


def _facts(wanted: Context, ask: Ask | None, watch: Watch) -> Facts:
    host = ssh_host(wanted)
    watch(Event(f"connecting to {wanted.slurm_url}"))
    try:
        return _probe_with_accounts(wanted)
    except (UnreachableError, RefusedError) as error:
        if error.code not in NEED_PERSON:
            error.hint = (
                f"see that this works first: ssh {wanted.slurm_url}" if "yurt login" in error.hint else error.hint
            )
            raise
        if ask is None or host is None:
            error.hint = (
                f"repeat in a terminal, or add it with --no-probe, then yurt login {wanted.name} and "
                f"yurt context probe {wanted.name}"
            )
            raise
    host.log_in()
    return _probe_with_accounts(wanted)


def _probe_with_accounts(wanted: Context) -> Facts:
    """Facts with the accounts in them: a context without its account would be refused by the site later."""
    found = probe(wanted)
    if found.accounting_silent:
        raise UnreachableError(
            f"{wanted.name}: the site's accounting does not answer, so your accounts there are not known",
            code="slurm-not-responding",
            hint="repeat it later, or name the account and add --no-probe",
        )
    return found


def complete(wanted: Context, facts: Facts, ask: Ask | None = None) -> Context:
    """Fill in partition, account and storage_dir from the facts; what `wanted` says stays."""
    changes: dict[str, str] = {}
    if wanted.partition is None and facts.partitions:
        names = [each.name for each in facts.partitions if each.up]
        changes["partition"] = facts.default_partition or _choose("partition", names, wanted.name, ask)
    if wanted.account is None and facts.accounts:
        default = next((each.name for each in facts.accounts if each.default), "")
        names = [each.name for each in facts.accounts]
        changes["account"] = default or _choose("account", names, wanted.name, ask)
    if wanted.storage_dir is None:
        scratch = next((each for each in facts.tiers if each.name == "scratch" and each.writable), None)
        changes["storage_dir"] = f"${scratch.variable}" if scratch is not None else "~"
    _check(wanted, facts)
    return msgspec.structs.replace(wanted, **changes)


def _choose(key: str, names: Sequence[str], context: str, ask: Ask | None) -> str:
    if len(names) == 1:
        return names[0]
    if ask is not None and names:
        return ask(f"Which {key} should jobs go to", names)
    raise UserError(
        f"the site has no default {key}; it has {', '.join(names) or 'none that is up'}",
        code="usage",
        hint=f"name one: yurt context add {context} --{key} {names[0] if names else 'NAME'} …",
    )


def _check(wanted: Context, facts: Facts) -> None:
    """What the person named must be there."""
    for key, value, names in (
        ("partition", wanted.partition, [each.name for each in facts.partitions]),
        ("account", wanted.account, [each.name for each in facts.accounts]),
        ("qos", wanted.qos, [each.name for each in facts.qos]),
    ):
        if value is not None and names and value not in names:
            raise UserError(f"the site has no {key} '{value}'; it has {', '.join(names)}", code="usage")
