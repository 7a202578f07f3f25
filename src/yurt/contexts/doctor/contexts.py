"""Examines the site of a context: its ssh settings, the connection, and one script on it."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

from yurt.backends.kinds import kind_of
from yurt.backends.registry import host_of
from yurt.backends.shell import doctor as script
from yurt.backends.slurm.probe import new_mark, sections
from yurt.config.paths import as_typed
from yurt.contexts import folders
from yurt.contexts.doctor import keys, site, ssh_config
from yurt.contexts.doctor.finding import Examined, Finding, Fix, fault, ok, warning
from yurt.contexts.facts import facts_if_probed
from yurt.errors import YurtError
from yurt.model.context import Context
from yurt.model.facts import Facts
from yurt.transport.base import Host
from yurt.transport.master import SESSIONS, Master
from yurt.transport.ssh import SshHost

TIMEOUT = 240.0


def examine(context: Context) -> Examined:
    """Examine a context in one round trip, and one more if no facts are cached. Never raises for a faulty site."""
    try:
        host = host_of(context)
        before = list(_before(host, context))
        found = [*before, *_ask(host, context)]
    except YurtError as error:
        found = [_unusable(error)]
    return Examined(context=context.name, findings=found)


def _unusable(error: YurtError) -> Finding:
    return fault("context", f"yurt cannot use the context ({error.code})", error.hint, detail=error.message)


def _before(host: Host, context: Context) -> Iterator[Finding]:
    """Yield what can be known without the site: ssh's settings and the keys that they name."""
    if not isinstance(host, SshHost):
        return
    settings = host.master.settings()
    if not settings:
        remedy = f"see what is wrong with `ssh -G {host.destination}`, and correct ~/.ssh/config"
        yield fault("ssh config", "ssh cannot read its configuration", remedy)
        return
    through = settings.get("proxyjump", "none")
    names = [f"{settings.get('user', '')}@{settings.get('hostname', '')}:{settings.get('port', '22')}"]
    names += [f"through {through}"] if through != "none" else []
    yield ok("ssh config", "ssh's settings for the host", " ".join(names))
    usual = {str(each) for each in keys.private_keys(keys.folder())}
    for key in host.master.identities():
        if os.access(key, os.F_OK):  # Path.exists fails if the folder is not readable
            try:
                wrong = keys.permissions(
                    key, others="other users can read it, so ssh ignores it", mask=0o077, mode="600"
                )
            except OSError:
                continue
            if wrong is not None and str(key) not in usual:  # those are findings about this machine
                yield wrong
        elif not key.name.startswith("id_"):
            remedy = "correct IdentityFile in ~/.ssh/config"
            yield warning(
                "ssh config", "a key that the ssh configuration names does not exist", remedy, detail=str(key)
            )
    alias = ssh_config.alias(context, host.master)
    if alias is not None:
        yield alias
    yield _master(host.master, settings)


def _master(master: Master, settings: dict[str, str]) -> Finding:
    if master.user_shares_connections(settings):
        return ok("connection", "your ssh configuration shares connections, and yurt uses that")
    if master.alive():
        if master.session_limit() < SESSIONS:
            text = f"sshd accepts only {master.session_limit()} sessions in one connection (MaxSessions)"
            return warning("connection", text, "yurt adapts, but commands may wait for each other; ask the site for 10")
        return ok("connection", "yurt's connection is open")
    if master.seems_alive():
        return ok("connection", "the last connection died; yurt opens a new one")
    return ok("connection", "no connection is open; yurt opens one")


def _ask(host: Host, context: Context) -> Iterator[Finding]:
    local = kind_of(context.type).here
    try:
        facts = facts_if_probed(context)
        base = folders.base_folder(context, facts)
    except YurtError as error:
        yield _refused(host, error)
        return
    if facts is not None:
        days = int(max(0.0, time.time() - facts.probed_at) // 86400)
        age = f"{days} days old" if days > 1 else "new"
        yield ok("facts", f"the recorded facts about the site are {age}")
    mark = new_mark()
    modules = " ".join(context.modules_to_load)
    text = script.script(slurm=not local, options=_options(context))
    sent = time.time()
    try:
        answer = host.run(text, mark, base, modules, _paths(context, facts), timeout=TIMEOUT)
    except YurtError as error:
        yield _refused(host, error)
        return
    with host.reading():
        found = script.read(sections(mark, answer.text))
    yield ok("login", "commands run on this machine" if local else "yurt can log in without a prompt")
    if not local:
        yield site.clock(found, sent, time.time())
        yield site.noise(context, answer.noise.decode(errors="replace"))
    yield from site.check(found, context, base, local=local)


def _options(context: Context) -> list[str]:
    """Return the options of sbatch for a test of the context's partition, account and QOS."""
    pairs = (("partition", context.partition), ("account", context.account), ("qos", context.qos))
    return [f"--{name}={value}" for name, value in pairs if value]


def _paths(context: Context, facts: Facts | None) -> str:
    """Return the settings of a context that name a file on the site, one on each line."""
    pairs = [("venv", context.venv), ("container", context.container), *(("wheelhouse", x) for x in context.wheelhouse)]
    found = []
    for key, path in pairs:
        if path and path[0] in "/~$" and "\n" not in path:
            found.append(f"{key}={folders.expand(context, facts, path, key)}")
    return "\n".join(found)


def _refused(host: Host, error: YurtError) -> Finding:
    """Return the finding for a site that cannot be reached, with the way to register a key if it rejects it."""
    detail = error.message.removeprefix(f"{host.name}: ")
    if isinstance(host, SshHost) and error.code in ("ssh-denied", "ssh-login-required"):
        return _denied(host, error, detail)
    remedy = error.hint
    if error.fault == "user":
        return fault("context", f"yurt cannot use the context ({error.code})", remedy, detail=detail)
    return fault("login", f"yurt cannot reach the site ({error.code})", remedy, detail=detail)


def _denied(host: SshHost, error: YurtError, detail: str) -> Finding:
    """Return the finding for a site that rejects the user's keys, or asks for a password: it may not have a key yet."""
    text = f"yurt cannot log in ({error.code})"
    if "passphrase" in error.message:
        return fault("login", text, error.hint, detail=detail)
    public = keys.public_keys(host.master.identities())
    if not public:
        remedy = f"{error.hint}; if the site accepts keys, {keys.no_key().remedy}"
        return fault("login", text, remedy, detail=detail)
    where = keys.registration(host.master.settings().get("hostname", ""))
    remedy = f"{error.hint}; if the site accepts keys and does not have {as_typed(public[0])} yet, {where}"
    fix = Fix(
        title="copy the public key with ssh-copy-id, which asks for your password on the site",
        command=["ssh-copy-id", "-i", str(public[0]), host.destination],
        prompts=True,
        shows=f"your public key:\n{_text(public[0])}\n{where}",
    )
    usable = not host.master.options and host.master.program == ["ssh"]
    return fault("login", text, remedy, detail=detail, fix=fix if usable else None)


def _text(file: Path) -> str:
    try:
        return file.read_text(errors="replace").strip()
    except OSError:
        return str(file)
