"""dev ssh, dev code: a terminal or a command on a dev node, and the editor on its workspace."""

from __future__ import annotations

import getpass
import os
import shlex
import shutil
import sys
from collections.abc import Sequence

import msgspec

from yurt.backends.kinds import kind_of
from yurt.cli import call
from yurt.cli.declare import WITH_DASHES, argument, verb
from yurt.config import contexts
from yurt.contexts import connect as sites
from yurt.contexts import folders
from yurt.contexts.facts import facts_of
from yurt.dev import holder, ssh_config
from yurt.dev import ssh_connection as connect
from yurt.dev.desks import check_name, ssh_name
from yurt.dev.find import running
from yurt.dev.include import propose
from yurt.dev.names import dev_names
from yurt.errors import RefusedError, UserError
from yurt.model.progress import Event, Watch, unwatched
from yurt.model.result import Result
from yurt.model.site_words import SitePath, UserName
from yurt.store import Entry


class Editor(msgspec.Struct, frozen=True, kw_only=True):
    """How VS Code opens the workspace of a dev node."""

    name: str
    ssh: str
    """The name under which ssh reaches it."""
    workspace: str
    """The folder on the node."""
    command: list[str]
    installed: bool
    """Whether this machine has the command."""


def user_of(context: str) -> UserName:
    """Return the name of the user on a context. RefusedError: the site names no user."""
    place = contexts.site(context)
    return UserName(getpass.getuser() if kind_of(place.type).here else facts_of(place).user, context)


def add_name(entry: Entry) -> None:
    """Add a dev node to yurt's ssh configuration, for its user on its context.

    RefusedError: the site names no user, or ssh cannot read the configuration; it stays as it was.
    """
    connect.forget_others(entry, check_name(entry.run.name))
    ssh_config.add(entry.run.name, user_of(entry.run.context))


def command(
    name: str, words: Sequence[str], *, context: str = "", terminal: bool, watch: Watch = unwatched
) -> list[str]:
    """Return the ssh command that opens a terminal on a running dev node, or runs a command in its workspace.

    RefusedError: it is not running, or ssh cannot reach it (`ssh-failed`); then `inside` does the same.
    """
    watch(Event(f"connecting to dev node {name}"))
    entry = running(folders.store(), name, context).entry
    add_name(entry)
    connect.link(entry, name)
    argv = ["ssh", "-F", str(ssh_config.file())]
    if not words:
        return [*argv, ssh_name(name)]
    inside = f'cd "$YURT_WORKSPACE" && {_line(words)}'
    return [*argv, "-t" if terminal else "-T", ssh_name(name), f"exec sh -c {shlex.quote(inside)}"]


def _line(words: Sequence[str]) -> str:
    """Return the line for a shell: a single word is one already, as for ssh; several words are a command."""
    return words[0] if len(words) == 1 else shlex.join(words)


def inside(name: str, words: Sequence[str], *, context: str = "", terminal: bool) -> int:
    """Open a terminal on a running dev node through its scheduler, or run a command; return the exit code."""
    entry = running(folders.store(), name, context).entry
    (placement,) = entry.placements
    backend = sites.named_backend(entry.run.context)
    status = holder.read(backend.files.read(placement.folder, holder.STATUS))
    if status is None or not status.folder:
        raise RefusedError(
            f"dev node '{name}' is not ready", code="run-not-running", hint="see it with `yurt dev status`"
        )
    rest = f"exec sh -c {shlex.quote(_line(words))}" if words else 'exec "${SHELL:-/bin/sh}"'
    script = f'. {shlex.quote(status.folder)}/environment; cd "$YURT_WORKSPACE" && {rest}'
    return backend.exec.run(placement, ["sh", "-c", script], terminal=terminal)


def editor(name: str, *, context: str = "", watch: Watch = unwatched) -> Result[Editor]:
    """Return how VS Code opens the workspace of a running dev node. Errors as for `command`."""
    watch(Event(f"connecting to dev node {name}"))
    entry = running(folders.store(), name, context).entry
    add_name(entry)
    workspace = SitePath(connect.link(entry, name).workspace, entry.run.context)
    argv = ["code", "--remote", f"ssh-remote+{ssh_name(name)}", workspace]
    found = Editor(
        name=name, ssh=ssh_name(name), workspace=workspace, command=argv, installed=shutil.which("code") is not None
    )
    return Result(kind="dev-code", data=found)


EXAMPLES = [
    "yurt dev ssh",
    "yurt dev ssh paper",
    "yurt dev ssh -- make test",
    "yurt dev ssh -- 'cd src; make'",
    "yurt dev ssh paper -- nvidia-smi",
]


@verb(examples=EXAMPLES, command_class=WITH_DASHES, context_help="")
@argument("words", nargs=-1, metavar="[NAME] [-- COMMAND...]", shell_complete=dev_names)
def ssh_command(words: tuple[str, ...]) -> int:
    """Open a terminal on a dev node, or run a command there.

    The session has the environment of the job. The exit code is that of the command. A COMMAND of one word is a line
    for sh, such as 'cd src; make'; several words are passed as they are. With --json, only errors are JSON.

    `ssh yurt-dev`, or `ssh yurt-dev-NAME`, opens the same terminal, and works with scp, rsync, port forwarding and
    editors; a command of `ssh yurt-dev` starts in the home directory, not in the workspace. Where ssh cannot reach the
    node, the terminal opens through the scheduler.
    """
    from yurt.cli.progress import watching_late

    at = words.index("--") if "--" in words else len(words)
    names, typed = words[:at], words[at + 1 :]
    if len(names) > 1:
        raise UserError(
            f"unexpected argument '{names[1]}'", code="usage", hint=f"for example: `yurt dev ssh {names[0]} -- ls`"
        )
    name = names[0] if names else "default"
    context = call.current().context
    terminal = sys.stdin.isatty() and sys.stdout.isatty()
    try:
        with watching_late() as watch:
            argv = command(name, typed, context=context, terminal=terminal, watch=watch)
    except RefusedError as error:
        if error.code not in ("ssh-failed", "site-invalid"):
            raise
        return inside(name, typed, context=context, terminal=terminal)
    propose(name, quiet=bool(typed))
    return os.execvp(argv[0], argv)
