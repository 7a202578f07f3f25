"""context add: connect to a site, probe it, and write a complete context."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import click
import msgspec

from yurt.backends.kinds import kind_of
from yurt.cli import call, progress, render
from yurt.cli.ask import choose
from yurt.cli.declare import argument, option, verb
from yurt.config import contexts
from yurt.config import facts as kept
from yurt.contexts.connect import real_host, ssh_host
from yurt.contexts.facts import cautions, probe
from yurt.contexts.list_profiles import obtain_profile, print_applied
from yurt.contexts.probe import print_facts
from yurt.contexts.profiles.apply import Applied, apply
from yurt.contexts.profiles.find import Known, of_facts
from yurt.errors import RefusedError, UnreachableError, UserError, one_of
from yurt.model.context import Context, ContextsFile
from yurt.model.facts import Facts
from yurt.model.progress import Event, Watch, unwatched
from yurt.model.result import Result

if TYPE_CHECKING:
    from yurt.model.facts import Facts


Ask = Callable[[str, Sequence[str]], str]
"""Asks the user a question with these possible answers; None where no user is at a terminal."""

NEED_USER = ("ssh-login-required", "ssh-key-unknown", "ssh-denied")


class Added(msgspec.Struct, frozen=True):
    """The new context; `facts` is None if the site was not probed."""

    context: Context
    facts: Facts | None
    current: bool
    profile: Applied | None = None
    """What the profile of the site contributed; null without a profile."""


def add(
    wanted: Context,
    *,
    look: bool = True,
    use: bool = False,
    profile: Known | None = None,
    recognise: bool = True,
    ask: Ask | None = None,
    watch: Watch = unwatched,
) -> Result[Added]:
    """Write a new context: the keys of `wanted`, completed with the facts of its site and with its profile.

    Without `profile`, the site is recognised by its host name and its facts, unless `recognise` is False. With `ask`,
    ssh may prompt on the first connection, and yurt asks for what it cannot find out. Nothing is written if the site
    cannot be probed, unless `look` is False.
    """
    file = contexts.default_file()
    known = contexts.load(file)
    if wanted.name in known.contexts or wanted.name in known.invalid:
        raise UserError(
            f"context '{wanted.name}' already exists",
            code="context-exists",
            hint=f"change it with `yurt context edit {wanted.name}`, or choose another name",
        )
    try:
        facts = _facts(wanted, ask, watch) if look and kind_of(wanted.type).probed else None
    except UnreachableError as error:
        known_site = of_facts(real_host(wanted), None) if recognise else None
        if known_site is not None and known_site.profile.notes:
            error.message += f". {' '.join(known_site.profile.notes)}"  # for example that the cluster was retired
        raise
    if profile is None and recognise:
        profile = of_facts(real_host(wanted), facts)
    applied = None
    if profile is not None:
        wanted, applied = apply(wanted, profile, facts)
    chooses = profile is not None and profile.profile.jobs.name_partition is False
    context = complete(wanted, facts, ask, partition=not chooses) if facts is not None else wanted
    contexts.merge(file, ContextsFile({context.name: context}))
    current = use or (known.current_context is None and not kind_of(context.type).here)
    if current:
        contexts.use(file, context.name)
    if facts is not None:
        kept.save(context, facts)
    warnings = cautions(facts) if facts is not None else []
    return Result(kind="context-added", data=Added(context, facts, current, applied), warnings=warnings)


def _facts(wanted: Context, ask: Ask | None, watch: Watch) -> Facts:
    host = ssh_host(wanted)
    watch(Event(f"connecting to {wanted.slurm_url}"))
    try:
        return _probe_with_accounts(wanted)
    except (UnreachableError, RefusedError) as error:
        if error.code not in NEED_USER:
            error.hint = f"check that `ssh {wanted.slurm_url}` works" if "yurt login" in error.hint else error.hint
            raise
        if ask is None or host is None:
            error.hint = (
                f"run the command again in a terminal, or add `--no-probe`, then run `yurt login {wanted.name}` and "
                f"`yurt context probe {wanted.name}`"
            )
            raise
    host.log_in()
    return _probe_with_accounts(wanted)


def _probe_with_accounts(wanted: Context) -> Facts:
    """Probe the site. UnreachableError: the accounts are missing; the site would reject runs without an account."""
    found = probe(wanted)
    if found.accounting_silent:
        raise UnreachableError(
            f"{wanted.name}: Slurm accounting does not respond, so yurt cannot list your accounts",
            code="slurm-not-responding",
            hint="run the command again later, or add `--account NAME --no-probe`",
        )
    return found


def complete(wanted: Context, facts: Facts, ask: Ask | None = None, *, partition: bool = True) -> Context:
    """Fill in partition, account and storage_dir from the facts, where `wanted` does not set them.

    `partition`: False if the site chooses the partition of each job.
    """
    changes: dict[str, str] = {}
    if partition and wanted.partition is None and facts.partitions:
        names = [each.name for each in facts.partitions if each.up]
        changes["partition"] = facts.default_partition or _choose("partition", names, ask)
    if wanted.account is None and facts.accounts:
        default = next((each.name for each in facts.accounts if each.default), "")
        names = [each.name for each in facts.accounts]
        changes["account"] = default or _choose("account", names, ask)
    if wanted.storage_dir is None:
        scratch = next((each for each in facts.tiers if each.name == "scratch" and each.writable), None)
        changes["storage_dir"] = f"${scratch.variable}" if scratch is not None else "~"
    _check(wanted, facts)
    return msgspec.structs.replace(wanted, **changes)


def _choose(key: str, names: Sequence[str], ask: Ask | None) -> str:
    if len(names) == 1:
        return names[0]
    if ask is not None and names:
        return ask(f"Which {key} should runs use", names)
    raise UserError(
        f"the site has no default {key}",
        code="usage",
        hint=f"run the command again with {one_of(f'--{key} {name}' for name in names)}",
    )


def _check(wanted: Context, facts: Facts) -> None:
    """Check that the partition, account and QOS named by the user exist."""
    for key, value, names in (
        ("partition", wanted.partition, [each.name for each in facts.partitions]),
        ("account", wanted.account, [each.name for each in facts.accounts]),
        ("qos", wanted.qos, [each.name for each in facts.qos]),
    ):
        if value is not None and names and value not in names:
            options = [f"--{key} {name}" for name in names]
            raise UserError(f"{key} '{value}' not found on the site", code="usage", hint=f"use {one_of(options)}")


def _ask(question: str, names: Sequence[str]) -> str:
    shown = {render.plain(name): name for name in names}
    return shown[choose(f"{question} ({', '.join(shown)})", list(shown), show=False)]


@verb(
    examples=[
        "yurt context add big --slurm-url alice@login.big.example",
        "yurt context add big --slurm-url big-alias --account physics --partition gpu",
        "yurt context add big --slurm-url me@big --ssh-option=-J --ssh-option=gateway",
    ],
    context_help="",
)
@argument("name", metavar="NAME", required=False, default="")
@option("--name", "named", metavar="NAME", default="", help="NAME as an option, as in mrunner.")
@option(
    "--slurm-url", required=True, metavar="USER@HOST", help="Login node, or a host alias from your ssh configuration."
)
@option("--partition", metavar="NAME", help="Partition to submit to (default: the site's default partition).")
@option("--account", metavar="NAME", help="Account to charge (default: your default account on the site).")
@option("--qos", metavar="NAME", help="Quality of service.")
@option("--storage-dir", metavar="DIR", help="Folder for runs on the site (default: $SCRATCH, or your home folder).")
@option("--ssh-option", "ssh_options", multiple=True, metavar="ARG", help="Additional ssh argument; repeatable.")
@option("--ssh-command", metavar="COMMAND", help="Program to run instead of ssh.")
@option("--probe/--no-probe", default=True, help="Query the site first (default), or only write the given keys.")
@option(
    "--profile",
    metavar="PROFILE",
    default="",
    help="Site profile: a name, a file or an https address (default: detect).",
)
@option("--no-profile", is_flag=True, help="Use no site profile.")
@option("--yes", is_flag=True, help="Use a downloaded profile without asking.")
@option("--use", is_flag=True, help="Make NAME the current context.")
def add_command(
    name: str,
    ssh_options: tuple[str, ...],
    ssh_command: str | None,
    *,
    named: str,
    probe: bool,
    profile: str,
    no_profile: bool,
    yes: bool,
    use: bool,
    **keys: Any,
) -> None:
    """Add a context for a Slurm cluster.

    Connects to the cluster, detects its partitions, accounts and storage, and writes context NAME. What is publicly
    known about a well-known cluster completes it (see `yurt context profiles`).
    """
    import shlex

    from yurt.config import contexts
    from yurt.model.context import Context

    if name and named:
        raise click.UsageError(f"the context has two names, '{name}' and '{named}'; give one of them")
    name = name or named
    if not name:
        raise click.UsageError("missing argument 'NAME'")
    contexts.check_name(name)
    given = {key: value for key, value in keys.items() if value is not None}
    try:
        program = tuple(shlex.split(ssh_command or ""))
    except ValueError as error:
        raise click.UsageError(f"--ssh-command: {error}") from None
    if not given["slurm_url"].strip():
        raise click.UsageError("--slurm-url is empty")
    if not program:
        _check_port(given["slurm_url"])
    if profile and no_profile:
        raise click.UsageError("--profile and --no-profile cannot be combined")
    wanted = Context(name=name, type="slurm", ssh_options=ssh_options, ssh_command=program, **given)
    interactive = sys.stdin.isatty() and sys.stderr.isatty() and not call.current().json
    known = obtain_profile(profile, yes=yes, interactive=interactive) if profile else None
    with progress.watching(asks=interactive) as watch:
        added = add(
            wanted,
            look=probe,
            use=use,
            profile=known,
            recognise=not no_profile,
            ask=_ask if interactive else None,
            watch=watch,
        )

    def print_text() -> None:
        if added.data.facts is not None:
            print_facts(added.data.facts)
            print()
        if added.data.profile is not None:
            print_applied(added.data.profile)
            print()
        print(f"context '{name}' added" + ("; it is now the current context" if added.data.current else ""))
        print(f"next:  yurt context show {name}")

    render.result(added, print_text)


def _check_port(address: str) -> None:
    """Raise UserError for host:22: ssh takes the port as an option."""
    host, colon, port = address.removeprefix("ssh://").partition(":")
    if colon and port.isdigit() and host:
        raise UserError(
            f"--slurm-url: '{address}' contains a port, which ssh takes as an option",
            code="usage",
            hint=f"use `--slurm-url {host} --ssh-option=-p --ssh-option={port}`",
        )
