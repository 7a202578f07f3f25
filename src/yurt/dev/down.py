"""dev down: make a last backup, verify it, and end the job of a dev node."""

from __future__ import annotations

import sys
from typing import Any

import click
import msgspec

from yurt.cli import call, render
from yurt.cli.ask import confirm
from yurt.cli.declare import argument, option, verb
from yurt.contexts import connect, folders
from yurt.dev import added, holder
from yurt.dev import connect as dev_connect
from yurt.dev import find as dev_find
from yurt.dev.added import AddedPackage
from yurt.dev.ask import ask, part
from yurt.dev.backup import is_of_node, shown
from yurt.dev.desks import Desk
from yurt.dev.names import dev_names
from yurt.dev.words import named
from yurt.errors import RefusedError, UnreachableError, YurtError
from yurt.lifecycle.cancel import cancel_runs
from yurt.lifecycle.refresh.refresh import refresh_contexts
from yurt.lifecycle.steps import STEPS
from yurt.lifecycle.wait import until_ended
from yurt.model.progress import Event, Watch, patience, unwatched
from yurt.model.result import Interrupted, Result
from yurt.store import Entry, Store

ENDING = 120.0
"""Seconds within which the job must be over after its holder said that it ends."""


SOON = 20.0
"""Seconds within which the job must be over if another command ended it."""


class Down(msgspec.Struct, frozen=True, kw_only=True):
    """A dev node that was ended."""

    name: str
    run: str
    context: str
    state: str
    """The state of its run now."""
    version: int = 0
    """The version with the last state of the workspace; 0 if no backup was made."""
    follow_up: str = ""
    """The queued run that was cancelled too."""
    added: list[AddedPackage] = []
    """The packages that were added on it and that runs do not have."""
    dropped: bool = False
    """Whether these were removed; else they stay in the workspace."""
    declare: str = ""
    """How the project declares them."""


def find(name: str, context: str = "") -> Desk:
    """Return an unfinished dev node, according to its site. RefusedError: it is not on the given context."""
    store = folders.store()
    where = dev_find.present(store, name, context).entry.run.context
    dev_find.check_context(name, where, context)
    refreshed = refresh_contexts(store, [where], steps=STEPS)
    if where in refreshed.failed:
        raise refreshed.failed[where]
    return dev_find.known(store, name)


def at_risk(name: str, context: str = "", node: str = "the node") -> str:
    """Return what the question before `down(now=True)` begins with: whether the files are nowhere else."""
    try:
        newest = dev_find.backups(name, context).found.newest
    except YurtError:
        return ""  # the user knows best, as the site may not respond
    if newest is None:
        return "its files have no backup: "
    return f"v{newest.number} is damaged, so its files may be only on {node}: " if newest.damaged else ""


def down(
    name: str, *, context: str = "", now: bool = False, drop: bool = False, watch: Watch = unwatched
) -> Result[Down]:
    """End a dev node. While it runs, it first makes a backup and verifies it, unless `now`.

    `drop`: without the packages that were added on it.

    Its queued follow-up is cancelled before it ends. RefusedError: the backup failed; UnreachableError: the dev node
    does not answer. In both cases it keeps its node. Interrupted: the user stopped waiting. No other job is touched.
    """
    note = f"dev node '{name}' keeps its node"
    try:
        desk, store = find(name, context), folders.store()
        after = " after its backup" if desk.entry.status.state == "running" and not now else ""
        note = f"dev node '{name}' may still end by itself{after}; see `yurt dev status{named(name)}`"
        return _end(desk, store, now, drop, watch)
    except KeyboardInterrupt:
        raise Interrupted(note) from None


def _end(desk: Desk, store: Store, now: bool, drop: bool, watch: Watch) -> Result[Down]:
    entry, version, notes = desk.entry, 0, []
    packages: list[AddedPackage] = []
    ask_first = entry.status.state == "running" and not now
    if desk.follow_up is not None:  # it would start when the present one ends
        if ask_first:
            _asked(store, entry, {"do": "backup", "reason": "down"}, watch)
        _cancel(store, desk.follow_up)
    if entry.status.state == "unknown":  # its job has ended, such as with its node: see how
        (entry,) = until_ended(store, [entry.run.id], timeout=SOON)
    if entry.status.final:
        error = dev_find.ended(entry)
        notes = [f"{error.message}; {error.hint}"] if entry.status.state != "completed" else []
    elif ask_first:
        answer = _asked(store, entry, {"do": "down", "backup": True, "drop": drop}, watch)
        version, packages = part(entry, answer, "version", int) or 0, added.read(answer.get("added"))
        notes = [f"v{version}: {answer['note']}"] if answer.get("note") else []
        watch(Event(f"waiting for the end of run {entry.run.id}"))
        entry = _ended(store, entry)
        if not entry.status.final:
            raise UnreachableError(
                f"run {entry.run.id} is backed up as v{version}, but its job has not ended yet",
                code="timed-out",
                hint=f"see it with `yurt show {entry.run.id}`",
            )
    else:
        notes = ["no packages were removed, as the dev node is not running"] if drop else []
        _cancel(store, entry)
        entry = _ended(store, entry)
    done = Down(
        name=desk.name,
        run=entry.run.id,
        context=entry.run.context,
        state=entry.status.state,
        version=version,
        follow_up="" if desk.follow_up is None else desk.follow_up.run.id,
        added=packages,
        dropped=drop and bool(packages),
        declare="" if entry.run.env is None else added.declaring(entry.run.env.title, packages),
    )
    return Result(kind="dev-down", data=done, warnings=notes)


def _ended(store: Store, entry: Entry) -> Entry:
    """Wait for the end of a run that ends now; return the run."""
    with patience(f"the end of run {entry.run.id}", ENDING):
        (entry,) = until_ended(store, [entry.run.id], timeout=ENDING)
    return entry


def _asked(store: Store, entry: Entry, request: dict[str, Any], watch: Watch) -> dict[str, Any]:
    """Return the answer of the holder, or only the version if another `dev down` has ended it.

    An error says that nothing was released.
    """
    try:
        return ask(entry, request, shown(watch, entry.run.context))
    except (RefusedError, UnreachableError) as error:
        ended = _if_ended(store, entry, error)
        if ended is not None:
            return ended
        if is_of_node(error):
            lost = dev_connect.why_lost(entry.run.name)
            raise UnreachableError(f"nothing was released: {lost.message}", code=lost.code, hint=lost.hint) from None
        hint = _advice(entry, can_ask=isinstance(error, RefusedError))
        raise type(error)(f"nothing was released: {error.message}", code=error.code, hint=hint) from None


def _advice(entry: Entry, *, can_ask: bool) -> str:
    """Return what to do about a dev node whose last backup failed: first what saves the files."""
    run, name, node = entry.run, named(entry.run.name), entry.status.node or "its node"
    where = at_risk(run.name, run.context, node) if can_ask else ""
    where = where or f"what changed since the last backup is only on {node}: "
    return (
        f"{where}try again when this is solved, or copy the files with"
        f" `yurt dev ssh{name} -- tar -cz . > work.tar.gz`; then `yurt dev down{name} --now` ends it without a backup"
    )


def _if_ended(store: Store, entry: Entry, error: YurtError) -> dict[str, Any] | None:
    """Return the last version of a dev node that has ended, or is ending, since it was found; None if it stays."""
    try:
        status = holder.read(connect.named_backend(entry.run.context).files.read(entry.run.folder, holder.STATUS))
    except YurtError:
        return None
    left = status is not None and status.phase in ("ending", "ended")
    (now,) = until_ended(store, [entry.run.id], timeout=SOON if left or error.code == "run-not-running" else 0)
    if not now.status.final:
        return None
    return {"version": status.version if status is not None and left and not status.failure else 0}


def _cancel(store: Store, entry: Entry) -> None:
    _done, unreachable = cancel_runs(store, [entry])
    if unreachable is not None:
        raise unreachable


@verb(examples=["yurt dev down", "yurt dev down paper", "yurt dev down --now --yes"], context_help="")
@argument("name", metavar="[NAME]", required=False, default="default", shell_complete=dev_names)
@option("--now", is_flag=True, help="Do not make a last backup: changes since the last one may be lost.")
@option("--drop-packages", "drop", is_flag=True, help="Remove the packages that you added on the dev node.")
@option("--yes", is_flag=True, help="With --now, do not ask for confirmation.")
def down_command(name: str, now: bool, drop: bool, yes: bool) -> int:
    """Back up the workspace, verify the backup, and release the node.

    If the backup fails, or the dev node does not answer, nothing is released. A dev node that is still queued is
    cancelled, and so is its follow-up. The next `yurt dev up` restores the workspace, with the packages that you added.
    """
    from yurt.cli.progress import watching_late
    from yurt.errors import UserError
    from yurt.model.result import Interrupted

    if now and drop:
        raise UserError("--now and --drop-packages cannot be combined", code="usage", hint="leave out one of them")
    if now and not yes:
        risk = at_risk(name, call.current().context)
        _confirm(f"{risk}end dev node '{name}' without a last backup?")
    try:
        with watching_late() as watch:
            found = down(name, context=call.current().context, now=now, drop=drop, watch=watch)
    except Interrupted as error:
        print(f"yurt: interrupted; {render.escaped(error.note)}", file=sys.stderr, flush=True)
        return 130

    def print_text() -> None:
        done = found.data
        saved = f"; its workspace is v{done.version}" if done.version else ""
        print(f"dev node '{done.name}' ended: run {done.run} is {done.state}{saved}")
        if done.follow_up:
            print(f"its follow-up, run {done.follow_up}, is cancelled")
        _print_added(done)

    return render.result(found, print_text)


def _print_added(done: Down) -> None:
    from yurt.dev.added import requested
    from yurt.dev.words import named

    if not done.added:
        return
    mine = requested(done.added)
    names = ", ".join(
        f"{each.name} {each.version}" + (f" instead of {each.instead_of}" if each.instead_of else "") for each in mine
    )
    if rest := len(done.added) - len(mine):
        names += f", with {render.count(rest, 'package')} that they require"
    if done.dropped:
        print(render.plain(f"removed packages: {names}"))
        return
    print(render.plain(f"packages added on the dev node, which runs do not have: {names}"))
    if done.declare:
        print(render.plain(f"declare them in your project {done.declare}"))
    command = f"yurt dev down{named(done.name)} --drop-packages"
    print(f"they stay in the workspace; end a later dev node with `{command}` to remove them")


def _confirm(question: str) -> None:
    """Ask the user; UserError without a terminal. Aborts if the answer is no."""
    from yurt.errors import UserError

    if call.current().json or not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UserError("nothing was ended: there is no terminal to ask on", code="usage", hint="add `--yes`")
    if not confirm(question, default=False):
        raise click.Abort
