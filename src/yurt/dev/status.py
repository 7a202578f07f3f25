"""dev status: the dev nodes, their time left and their backups."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from yurt.cli import call, render
from yurt.cli.declare import argument, verb
from yurt.config import contexts
from yurt.contexts import folders
from yurt.dev import desks, elsewhere, views
from yurt.dev import find as dev_find
from yurt.dev.names import dev_names
from yurt.dev.views import DevNode, silent_for
from yurt.lifecycle.refresh.refresh import Refreshed, refresh_contexts
from yurt.lifecycle.steps import STEPS
from yurt.model.progress import Event, Watch, unwatched
from yurt.model.result import Result

if TYPE_CHECKING:
    from yurt.dev.views import DevNode


def status(name: str = "", *, context: str = "", watch: Watch = unwatched) -> Result[list[DevNode]]:
    """Return the unfinished dev nodes, or the one of this name; of one context, or of all.

    Those of other machines are looked for on the given or the current context, and where there is one of this machine;
    on all contexts if there would be none.
    A site that does not respond is a warning; its dev nodes are as they were seen last. NotFoundError: there is none
    of this name.
    """
    store = folders.store()
    known = [dev_find.present(store, name, context)] if name else desks.unfinished(store)
    names = {each.entry.run.context for each in known if context in ("", each.entry.run.context)}
    refreshed = Refreshed()
    if names:
        watch(Event(f"querying {', '.join(sorted(names))}"))
        refreshed = refresh_contexts(store, sorted(names), steps=STEPS)
    warnings = refreshed.warnings
    if not name:
        usual = {*names, context or contexts.current_name()}
        others = usual if context or desks.unfinished(store) else {*usual, *elsewhere.everywhere()}
        failed = elsewhere.import_all(store, sorted(others - set(refreshed.failed)))
        for each, error in sorted(failed.items()):
            why = elsewhere.why(each, error)
            warnings.append(f"cannot look for dev nodes of other machines on {each}: {why}")
        warnings += dev_find.lost_nodes(store, context)
    known = [dev_find.known(store, name)] if name else desks.unfinished(store)
    found, notes = views.several([each for each in known if context in ("", each.entry.run.context)])
    return Result(kind="dev-nodes", data=found, warnings=[*warnings, *notes], exit_code=4 if notes else 0)


@verb(
    examples=["yurt dev status", "yurt dev status paper", "yurt dev status --json"],
    context_help="Only dev nodes on this context.",
)
@argument("name", metavar="[NAME]", required=False, default="", shell_complete=dev_names)
def status_command(name: str) -> int:
    """Show dev nodes, their time left and their backups.

    Without NAME, lists all dev nodes that have not ended; if there is only one, shows it in detail.
    """
    from yurt.cli.progress import watching_late

    with watching_late() as watch:
        found = status(name, context=call.current().context, watch=watch)
    return render.result(found, lambda: _print(found.data), requested=True)


def _print(found: list[DevNode]) -> None:
    if not found:
        where = call.current().context
        other = ", or name another context with `--context`" if where else ""
        print(render.plain(f"no dev nodes{where and f' on {where}'}; start one with `yurt dev up`{other}"))
    elif len(found) == 1:
        print_detail(found[0])
    else:
        _table(found)
        for each in found:
            for line in _trouble(each):
                print(render.plain(f"{each.name}: {line}"))


def _table(found: Sequence[DevNode]) -> None:
    """Print a line for each dev node. On a narrow terminal, its name, its state and its time left remain."""
    from yurt.cli.listing import listing

    columns = ["name", "context", "state", "node", "job", "time left", "workspace", "last backup", "ssh"]
    rows = [
        [
            each.name,
            each.context,
            _state(each),
            each.node,
            each.job,
            time_left(each),
            each.workspace,
            "unknown" if each.unread else render.moment(None if each.backup is None else each.backup.time),
            each.ssh,
        ]
        for each in found
    ]
    listing(
        columns,
        rows,
        styles=[""] * len(rows),
        styled="",
        shrinks=["name", "state", "workspace"],
        drops=["workspace", "job", "last backup", "ssh", "node", "context", "time left"],
    )


def print_detail(each: DevNode) -> None:
    """Print everything about one dev node."""
    from yurt.cli.run_facts import print_facts

    print_facts(
        [
            ("dev node", each.name),
            ("state", _state(each)),
            ("context", each.context),
            ("node", each.node),
            ("run", each.run),
            ("job", each.job),
            ("time left", time_left(each)),
            ("workspace", each.workspace),
            ("last backup", _backup(each)),
            ("next backup", "" if each.next_backup is None else render.moment(each.next_backup)),
            ("follow-up", f"run {each.follow_up} takes over when this one ends" if each.follow_up else ""),
            ("ssh", f"ssh {each.ssh}" if each.state == "running" else ""),
        ]
    )
    for line in _trouble(each):
        print(render.plain(line))


def time_left(each: DevNode) -> str:
    """Return the time until the limit of a dev node."""
    return "" if each.ends is None else render.span(max(0.0, each.ends - time.time()))


def _state(each: DevNode) -> str:
    from yurt.dev.words import phase

    if each.state == "running" and each.phase:
        return phase(each)
    return render.with_reason(each.state, each.reason)


def _backup(each: DevNode) -> str:
    last = each.backup
    if each.unread:
        return "unknown"
    if last is None:
        return "none yet" if each.state == "running" else ""
    sizes = f"{render.amount(last.size)}, {render.amount(last.new_size)} new"
    return f"v{last.number} at {render.moment(last.time)} ({last.reason}), {sizes}, {last.seconds:.1f} s"


def _trouble(each: DevNode) -> list[str]:
    """Return sentences about what the user should know."""
    lines = [*each.warnings, each.fork]
    if silence := silent_for(each, time.time()):
        lines.append(f"no news from the node for {render.span(silence)}: it may be down, or its shared disk")
    if each.failure:
        lines.append(f"the last backup failed: {each.failure}")
    if each.backup is not None and each.backup.note:
        lines.append(f"backup v{each.backup.number}: {each.backup.note}")
    if each.idle_since is not None:
        lines.append(f"idle for {render.span(max(0.0, time.time() - each.idle_since))}")
    if each.aside:
        lines.append(f"an older workspace is in {each.aside}")
    return [line for line in lines if line]
