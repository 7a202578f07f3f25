"""dev up: start a dev node, or follow the one that there is, until its workspace is ready."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, TypeVar

import click
import msgspec
from click.core import ParameterSource

from yurt.backends.kinds import kind_of
from yurt.cli import call, render
from yurt.cli.declare import argument, option, verb
from yurt.cli.progress import watching
from yurt.cli.settings import options as setting_options
from yurt.config import contexts, paths, precedence, unused_keys
from yurt.config.lock import locked
from yurt.contexts import bad_nodes, connect, folders
from yurt.contexts.facts import facts_if_probed
from yurt.dev import configure, desks, nodes, sources, views
from yurt.dev import copy as dev_copy
from yurt.dev import find as dev_find
from yurt.dev.desks import Desk
from yurt.dev.elsewhere import of_other_machine
from yurt.dev.find import Backups
from yurt.dev.follow import Following, Waiting
from yurt.dev.include import propose
from yurt.dev.names import dev_names
from yurt.dev.sources import Source
from yurt.dev.ssh import add_name
from yurt.dev.views import DevNode
from yurt.dev.words import named
from yurt.errors import NotFoundError, RefusedError, UserError, YurtError
from yurt.lifecycle.outbox.enqueue import enqueue
from yurt.lifecycle.plan.holders import CONFIGURATION
from yurt.lifecycle.plan.plan import plan
from yurt.lifecycle.plan.request import Planned, Request
from yurt.lifecycle.plan.scheduling import limits_nodes, resources_of
from yurt.lifecycle.refresh.refresh import refresh_contexts
from yurt.lifecycle.select import no_plan
from yurt.lifecycle.steps import STEPS
from yurt.lifecycle.syncing import sync_first
from yurt.model import ids, layout, settings
from yurt.model.context import Context
from yurt.model.facts import Facts, partition_of_job
from yurt.model.progress import Event, Watch, unwatched
from yurt.model.result import Interrupted, Result
from yurt.model.run import After
from yurt.model.settings_dev import DEV
from yurt.store import Entry, Store

if TYPE_CHECKING:
    from yurt.dev.follow import Followed
    from yurt.lifecycle.plan.request import Request


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """What the user asks for, beside the settings of the request."""

    name: str = desks.DEFAULT
    context: str = ""
    """As given; empty for the current one."""
    node: str = ""
    source: str = ""
    """The value of --from."""
    restore: str = ""
    """The version to restore, such as v12; empty for the newest."""
    given: Sequence[str] = ()
    """The options that were given, for a note if they are ignored."""
    wait: bool = True


def up(
    request: Request, asked: Asked, *, on_wait: Waiting = lambda _seen, _warnings: None, watch: Watch = unwatched
) -> Result[DevNode]:
    """Start a dev node, or follow the unfinished one of this name, until its workspace is ready.

    Interrupted: the user stopped waiting; the run stays. RefusedError: the site rejects it, or it ended.
    """
    desks.check_name(asked.name)
    store = folders.store()
    entry, warnings, wish = _found(store, request, asked, watch)
    try:
        (entry,), notes = sync_first(store, [entry], watch=watch)
        warnings += notes
        if asked.wait:
            try:
                entry = Following(store, entry, on_wait, wish).until_ready()
            except RefusedError:
                now = store.get(entry.run.id)
                if now is None or not now.status.final or entry.status.state not in ("running", "unknown"):
                    raise
                # Its node died before `dev up`, which the site did not know yet, or not for certain.
                entry, warnings, wish = _found(store, request, asked, watch)
                (entry,), notes = sync_first(store, [entry], watch=watch)
                warnings += notes
                entry = Following(store, entry, on_wait, wish).until_ready()
    except KeyboardInterrupt:
        raise Interrupted(_left(store, entry)) from None
    try:
        add_name(entry)
    except RefusedError as error:  # it runs, and `yurt dev ssh` reaches it
        warnings.append(error.message)
    desk = desks.find(store, asked.name) or Desk(asked.name, entry)
    (view,), notes = views.several([desk])
    return Result(kind="dev-node", data=view, warnings=[*warnings, *notes])


def _found(store: Store, request: Request, asked: Asked, watch: Watch) -> tuple[Entry, list[str], str]:
    """Return the unfinished run of a dev node, or submit one; warnings; and the node that yurt chose.

    One process at a time, so that two commands do not submit two jobs.
    """
    with locked(paths.data_home() / "dev" / asked.name):
        entry, warnings, wish = _existing(store, asked, watch)
        return (entry, warnings, wish) if entry is not None else _started(store, request, asked, watch)


def _left(store: Store, entry: Entry) -> str:
    now = store.get(entry.run.id) or entry
    name = named(now.run.name)
    return (
        f"dev node '{now.run.name}' is {now.status.state} and stays; follow it with `yurt dev up{name}`,"
        f" or remove it with `yurt dev down{name}`"
    )


def _existing(store: Store, asked: Asked, watch: Watch) -> tuple[Entry | None, list[str], str]:
    """Return the unfinished run of a dev node according to its site, and warnings; None if there is none."""
    desk = desks.find(store, asked.name)
    if desk is None:
        return None, [], ""
    refreshed = refresh_contexts(store, [desk.entry.run.context], steps=STEPS, watch=watch)
    if desk.entry.run.context in refreshed.failed:
        raise refreshed.failed[desk.entry.run.context]
    desk = desks.find(store, asked.name)
    if desk is None:
        return None, refreshed.warnings, ""
    run = desk.entry.run
    if asked.context and asked.context != run.context:
        name = named(asked.name)
        raise RefusedError(
            f"dev node '{asked.name}' is on {run.context}, not on {asked.context}",
            code="impossible",
            hint=f"end it with `yurt dev down{name}`, or choose another name: `yurt dev up NAME"
            f" --context {asked.context}`",
        )
    return desk.entry, [*refreshed.warnings, *_ignored(asked, f"it exists already as run {run.id}")], ""


def _ignored(asked: Asked, why: str) -> list[str]:
    return [f"{', '.join(asked.given)} ignored for dev node '{asked.name}': {why}"] if asked.given else []


def _started(store: Store, request: Request, asked: Asked, watch: Watch) -> tuple[Entry, list[str], str]:
    """Submit a dev node, unless another machine has. Return its run, warnings, and the node that yurt chose."""
    place = contexts.site(contexts.current_name(asked.context))
    wanted, facts = _wanted(place, request), facts_if_probed(place, watch=watch)
    folder = configure.backups_folder(wanted, facts, asked.name)
    (there,) = connect.backend(place).workspaces.look([folder])
    other = of_other_machine(store, place, there.holder)
    if other is not None:
        return other, _ignored(asked, f"another machine started it as run {other.run.id}"), ""
    minutes, note = configure.time_limit(wanted, facts)
    warnings = [note] if note else []
    held = Backups(place, folder, there, asked.name)
    source, restore, about = _source(asked, held, facts)
    warnings += about
    other_desk = dev_copy.find(source) if source.kind == "desk" else None
    wish, avoided = ("", {}) if asked.node else _choice(store, held, wanted, facts, watch)
    warnings += [f"{node} is avoided: {why}" for node, why in avoided.items()]
    warnings += _damage(held, wish) if not asked.node and not restore else []
    request = msgspec.structs.replace(
        request,
        name=asked.name,
        snapshot=source.kind == "project",
        flags={
            **request.flags,
            **({"time": str(minutes)} if minutes is not None else {}),
            **({"nodelist": asked.node or wish} if asked.node or wish else {}),
            **({"exclude_nodes": ",".join(avoided)} if avoided else {}),
        },
        dev=configure.configuration(
            wanted,
            facts,
            asked.name,
            source=_source_on_node(source, folder),
            restore=restore,
            minutes=minutes,
        ),
    )
    planned = plan(place, request, index=store, offline=False, watch=watch)
    if source.upload:
        dev_copy.upload(source, place, folder, watch)
    if other_desk is not None:
        dev_copy.copy(*other_desk, place, folder, watch)
        warnings.append(f"the workspace is restored from v{other_desk[1].number} of {source.value}:{source.desk}")
    entry, notes = enqueue(store, place, planned, watch=watch)
    return entry, [*unused_keys.first_time(place.name), *warnings, *notes], wish


def _damage(held: Backups, wish: str) -> list[str]:
    """Return a warning if the newest version is damaged. `wish`: the node that yurt chose."""
    newest = held.found.newest
    if newest is None or not newest.damaged:
        return []
    if wish and dev_find.copies(held).get(wish.partition(".")[0]) == newest.number:
        return [f"v{newest.number} is damaged: {wish}, which made it, may still have its files, so it starts there"]
    return [f"v{newest.number} is damaged: {dev_find.recovery(held, newest)}"]


def _wanted(place: Context, request: Request) -> Context:
    return precedence.as_context(place.name, precedence.resolve(place, request.flags))


def _source(asked: Asked, held: Backups, facts: Facts | None) -> tuple[Source, int, list[str]]:
    """Return what to make a workspace from, the version to restore (0: the newest), and warnings."""
    place, there = held.context, held.found
    here = kind_of(place.type).here
    known = contexts.load(contexts.default_file()).contexts
    source = sources.parse(asked.source, facts, {*known, "local"}, here=here)
    restore = _version(asked, held)
    if there.versions and source.kind:
        why = f"the workspace of dev node '{asked.name}' has {len(there.versions)} backups on {place.name}"
        return Source(), restore, [f"--from ignored: {why}"]
    return source, restore, []


def _source_on_node(source: Source, folder: str) -> dict[str, Any]:
    """Return the source as the holder knows it. A workspace of another context arrives as a version."""
    kind = "" if source.kind == "desk" else source.kind
    return {"kind": kind, "value": sources.located(source, folder), "uploaded": bool(source.upload)}


def _version(asked: Asked, held: Backups) -> int:
    if not asked.restore:
        return 0
    text = asked.restore.removeprefix("v")
    if not text.isdigit():
        raise UserError(f"--restore '{asked.restore}' is not a version", code="usage", hint="for example: `v12`")
    version = next((each for each in held.found.versions if each.number == int(text)), None)
    if version is None:
        raise NotFoundError(
            f"the workspace of dev node '{asked.name}' has no version v{text}",
            code="not-found",
            hint=f"list its versions with `yurt dev backups {asked.name}`",
        )
    if dev_find.copies(held).get(asked.node.partition(".")[0]) != version.number:  # else that node may have a copy
        dev_find.check_whole(held, version)
    return version.number


def _choice(
    store: Store, held: Backups, wanted: Context, facts: Facts | None, watch: Watch
) -> tuple[str, dict[str, str]]:
    """Return the node to request, empty to let the scheduler choose, and the nodes to avoid, each with the reason."""
    if facts is None or wanted.nodelist or limits_nodes(wanted.sbatch_options):
        return "", {}
    place = held.context
    watch(Event(f"looking for a node of {place.name}"))
    try:
        found = connect.backend(place).site.nodes()
    except YurtError:
        return "", {}  # the scheduler can choose without it
    last, failed = desks.past(store, held.name, place.name)
    partition = partition_of_job(wanted.partition, facts)
    reasons: dict[str, str] = {}
    for each in failed:  # newest first
        why = each.status.reason.partition("; ")[0]  # without the advice of that time
        reasons.setdefault(each.status.node, f"run {each.run.id} could not start there: {why}")
    avoided = {} if wanted.exclude_nodes else nodes.at_most_half(found, partition, reasons)
    wish = nodes.chosen(
        found,
        resources_of(wanted),
        partition=partition,
        last=nodes.with_copy(found, held.found.newest, last),
        avoid=avoided,
        failed=[each.node for each in bad_nodes.known(store, place.name)],
    )
    return wish, avoided


def follow_up(store: Store, entry: Entry, watch: Watch = unwatched) -> tuple[Entry, list[str]]:
    """Submit another run of the same dev node that starts when the present one has ended. Return it, and warnings."""
    old = store.plan(entry.run.id)
    if old is None:
        raise no_plan(entry.run.id)
    created = time.time()
    run_id = ids.make(created, int.from_bytes(os.urandom(4)))
    run = msgspec.structs.replace(
        old.run,
        id=run_id,
        created=created,
        folder=layout.run(old.project_folder, run_id),
        resources=msgspec.structs.replace(old.run.resources, nodelist=None),
        after=[After(run=entry.run.id, folder=entry.run.folder, ended=True)],
        home_sync=False,
    )
    variables = {**old.variables, **_takes_over(old.variables)}
    planned = Planned(msgspec.structs.replace(old, run=run, variables=variables), [])
    return enqueue(store, contexts.site(entry.run.context), planned, watch=watch)


def _takes_over(variables: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return the configuration of a follow-up: it starts from the newest version, whatever the first was made from."""
    given = msgspec.json.decode(variables[CONFIGURATION])
    return {CONFIGURATION: msgspec.json.encode({**given, "restore": 0, "source": {"kind": "", "value": ""}})}


EXAMPLES = [
    "yurt dev up --gpus 1 --time 8h",
    "yurt dev up paper --context big --from https://git.example/paper.git",
    "yurt dev up --node n3 --interval 15m",
    "yurt dev up --context beta --from alpha",
]

RESOURCES = [row for row in settings.RESOURCES if row.option not in ("nodes", "ntasks", "ntasks_per_node", "nodelist")]
ENVIRONMENT = [row for row in settings.ENVIRONMENT if row.option not in ("secrets", "container")]

_Decorated = TypeVar("_Decorated", bound=Callable[..., Any])


def _dev_options(function: _Decorated) -> _Decorated:
    for row in reversed([row for row in DEV if row.cli]):
        flag, metavar = row.cli.split()
        function = option(flag, row.key, metavar=metavar, help=row.help)(function)
    return function


@verb(examples=EXAMPLES)
@argument("name", metavar="[NAME]", required=False, default="default", shell_complete=dev_names)
@option("--node", metavar="NODE", default="", help="Use this node; by default a lightly used one.")
@_dev_options
@option(
    "--from",
    "source",
    metavar="SOURCE",
    default="",
    help="Make a new workspace from a git URL, `project`, TIER:PATH, a folder or an archive, or from another CONTEXT.",
)
@option("--restore", metavar="VERSION", default="", help="Restore this version instead of the newest.")
@option("--no-wait", is_flag=True, help="Submit the job and do not wait until the workspace is ready.")
@setting_options(RESOURCES, ENVIRONMENT, settings.HOMES)
def up_command(name: str, **options: Any) -> int:
    """Start a dev node, or follow the one that there is.

    Allocates a node, restores the workspace on its disk, and waits until it is ready. The first time, the workspace is
    created, by default empty, and backed up. If the dev node is queued or running already, it is followed, and options
    for a new one are ignored.

    The node is the one that had the workspace last if it is free, else the least used one. Without --time, the time
    limit is 8 hours, or the maximum of the partition. Ctrl-C stops the waiting; the job stays.

    The job makes a backup every 30 minutes, and before it ends for any reason.
    """
    from yurt.dev.status import print_detail
    from yurt.model.result import Interrupted

    now = call.current()
    asked = Asked(
        name=name,
        context=now.context,
        node=options["node"],
        source=options["source"],
        restore=options["restore"],
        given=_given(),
        wait=not options["no_wait"],
    )
    line = _Line(quiet=now.quiet or now.json)
    try:
        with ExitStack() as submission:
            watch = submission.enter_context(watching())

            def on_wait(seen: Followed, warnings: Sequence[str]) -> None:
                submission.close()
                line.show(seen, warnings)

            found = up(_request(options), asked, on_wait=on_wait, watch=watch)
    except Interrupted as error:
        line.clear()
        print(f"yurt: interrupted; {render.escaped(error.note)}", file=sys.stderr, flush=True)
        return 130
    finally:
        line.clear()
    code = render.result(found, lambda: print_detail(found.data))
    propose(name)
    return code


class _Line:
    """The status line of a dev node that is not ready."""

    def __init__(self, *, quiet: bool) -> None:
        from yurt.lifecycle.pending_text import Pending

        self._pending = Pending(quiet=quiet)

    def show(self, seen: Followed, warnings: Sequence[str]) -> None:
        more = seen.phase
        if seen.expected is not None:
            more = f"expected to start at {render.moment(seen.expected)}"
        self._pending.show(seen.entry, warnings, more=more)

    def clear(self) -> None:
        self._pending.clear()


def _given() -> list[str]:
    """Return the options of a new dev node that the user gave."""
    context = click.get_current_context()
    return [
        parameter.opts[0]
        for parameter in context.command.params
        if isinstance(parameter, click.Option)
        and parameter.expose_value
        and parameter.name != "no_wait"
        and context.get_parameter_source(str(parameter.name)) == ParameterSource.COMMANDLINE
    ]


def _request(options: dict[str, Any]) -> Request:
    from yurt.lifecycle.plan.request import Request
    from yurt.lifecycle.run_request import flags

    own = {row.key: options[row.key] for row in DEV if row.cli}
    return Request(words=(), flags={**flags(options), **own}, dev={})
