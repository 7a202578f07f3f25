"""cluster: show the state of sites now, side by side, and the nodes that yurt avoids on them."""

from __future__ import annotations

import time
from collections.abc import Sequence

import msgspec

from yurt.backends.kinds import kind_of
from yurt.cli import call, render
from yurt.cli.completers import context_names
from yurt.cli.declare import argument, option, verb
from yurt.config import contexts
from yurt.config import facts as cache
from yurt.contexts import bad_nodes, connect, folders
from yurt.contexts.facts import facts_if_probed
from yurt.contexts.fan_out import side_by_side
from yurt.errors import NotFoundError, UnreachableError, UserError, YurtError
from yurt.model.context import LOCAL, Context
from yurt.model.facts import Facts
from yurt.model.live import Live
from yurt.model.maintenance import time_limit, warnings_of
from yurt.model.progress import Event, Watch, unwatched
from yurt.model.result import Result
from yurt.store import BadNode, Store


class Cluster(msgspec.Struct, frozen=True, kw_only=True):
    """A context's site: its state now, its recorded facts, and the nodes that yurt avoids."""

    context: str
    live: Live | None = None
    """Null if the site is unreachable."""
    facts: Facts | None = None
    """Null for this machine, and for a site that was never probed."""
    avoided_nodes: list[BadNode] = []
    notes: list[str] = []
    """Sentences about maintenance that begins within the time limit of the context."""


class _Failed(msgspec.Struct, frozen=True):
    """Why a context is shown incompletely."""

    warning: str
    exit_code: int


def cluster(
    names: Sequence[str] = (),
    *,
    context: str = "",
    every: bool = False,
    allow: Sequence[str] = (),
    watch: Watch = unwatched,
) -> Result[list[Cluster]]:
    """Query contexts in parallel, by default the current one, in one request each; with `allow`, unblock its nodes.

    A site that does not respond is shown with its cached facts and a warning; the exit code is then 4.
    NotFoundError: yurt does not avoid a node in `allow`.
    """
    chosen = _chosen(names, context, every=every)
    store = folders.store()
    if allow:
        _allow(store, chosen, allow)
    found: dict[str, Cluster] = {}
    failed: dict[str, _Failed] = {}
    watch(Event(f"querying {', '.join(each.name for each in chosen)}"))

    def one(site: Context) -> None:
        with store.twin() as index:
            found[site.name], problem = _look(index, site, alone=len(chosen) == 1)
        if problem is not None:
            failed[site.name] = problem

    side_by_side(one, chosen)
    problems = [failed[each.name] for each in chosen if each.name in failed]
    problems += _invalid() if every else []
    return Result(
        kind="clusters",
        data=[found[each.name] for each in chosen],
        warnings=[each.warning for each in problems],
        exit_code=max((each.exit_code for each in problems), default=0),
    )


def _chosen(names: Sequence[str], context: str, *, every: bool) -> list[Context]:
    """Return the contexts to query, each once, before the first connection."""
    if every:
        if names:
            raise UserError("--all and context names cannot be combined", code="usage", hint="use `yurt cluster --all`")
        there = contexts.load(contexts.default_file()).contexts
        names = [*([] if LOCAL.name in there else [LOCAL.name]), *there]
        return [each for each in map(contexts.named, names) if kind_of(each.type).has_host]
    return [contexts.site(name) for name in dict.fromkeys(names or [contexts.current_name(context)])]


def _invalid() -> list[_Failed]:
    """Return a warning for each context that `--all` leaves out because it is invalid."""
    names = sorted(contexts.load(contexts.default_file()).invalid)
    texts = [f"context '{name}' is invalid and was not queried; see `yurt context show {name}`" for name in names]
    return [_Failed(text, UserError.exit_code) for text in texts]


def _allow(store: Store, chosen: Sequence[Context], nodes: Sequence[str]) -> None:
    if len(chosen) != 1:
        raise UserError(
            "--allow needs exactly one context",
            code="usage",
            hint=f"for example: `yurt cluster {chosen[0].name} --allow {nodes[0]}`",
        )
    name = chosen[0].name
    avoided = {each.node for each in bad_nodes.known(store, name)}
    for node in nodes:
        if node not in avoided:
            raise NotFoundError(
                f"node '{node}' is not on the avoided list of {name}",
                code="not-found",
                hint=f"list avoided nodes with `yurt cluster {name}`",
            )
    for node in nodes:
        store.forget_bad_node(name, node)


def _look(store: Store, context: Context, *, alone: bool) -> tuple[Cluster, _Failed | None]:
    backend = connect.backend(context)
    live, facts, problem = None, None, None
    try:
        connect.check_responds(context, backend, scheduler=True, alone=alone)
        facts = _facts(context)
        live = _with_runs(store, context, backend.site.look(facts.accounts if facts is not None else []))
    except YurtError as error:
        facts = facts or cache.load(context)
        why = error.message.removeprefix(f"{context.name}: ").removeprefix(f"{context.name} ")
        problem = _Failed(f"cannot query {context.name}: {why}{_age(facts)}", error.exit_code)
    if live is not None and live.silent:
        why = f"cannot query {context.name}: {live.problem}"
        problem = _Failed(f"{why}{_age(facts)}", UnreachableError.exit_code)
    made = Cluster(
        context=context.name,
        live=live,
        facts=facts,
        avoided_nodes=bad_nodes.known(store, context.name),
        notes=warnings_of(live, time_limit(context, live)) if live is not None else [],
    )
    return made, problem


def _facts(context: Context) -> Facts | None:
    """Return the facts of a site; None if it was never probed and its controller does not respond."""
    try:
        return facts_if_probed(context)
    except UnreachableError as error:
        if error.code != "slurm-not-responding":
            raise
        return None


def _age(facts: Facts | None) -> str:
    """Return how old the facts are that are shown instead."""
    if facts is None:
        return ""
    minutes = max(1, int(time.time() - facts.probed_at) // 60)
    hours = minutes // 60
    age = f"{hours // 24} days" if hours >= 48 else f"{hours} hours" if hours >= 2 else f"{minutes} min"
    return f"; showing facts that are {age} old"


def _with_runs(store: Store, context: Context, live: Live) -> Live:
    """Add the ids of yurt runs to the user's jobs."""
    if not live.queue.mine or all(job.run for job in live.queue.mine):
        return live
    entries = store.several([ref.id for ref in store.refs(context.name)])
    runs = {each.status.job: each.run.id for each in entries if each.status.job}
    jobs = [
        job
        if job.run
        else msgspec.structs.replace(job, run=runs.get(job.job) or runs.get(job.job.partition("_")[0], ""))
        for job in live.queue.mine
    ]
    return msgspec.structs.replace(live, queue=msgspec.structs.replace(live.queue, mine=jobs))


@verb(
    examples=["yurt cluster", "yurt cluster alpha beta", "yurt cluster --all", "yurt cluster big --allow n7"],
)
@argument("names", nargs=-1, metavar="[CONTEXT]...", shell_complete=context_names)
@option("--all", "every", is_flag=True, help="Query every context.")
@option("--allow", metavar="NODE", multiple=True, help="Stop avoiding NODE; repeatable.")
def cluster_command(names: tuple[str, ...], every: bool, allow: tuple[str, ...]) -> int:
    """Show what is free on sites, the queue and maintenance, now.

    Queries each CONTEXT, or the current context, in parallel. For Slurm it shows what is free, which partitions you
    may use, your place in the queue, your fair share, and reservations ahead; -v adds why nodes are down and the
    recorded facts. If a site does not respond, its recorded facts are shown and the exit code is 4.

    After a run fails because of a node, yurt avoids that node for three days. --allow lifts this early;
    `yurt run --nodelist` overrides it for one run.
    """
    from yurt.cli.progress import watching
    from yurt.contexts.cluster_text import print_cluster

    now = call.current()
    with watching() as watch:
        found = cluster(names, context=now.context, every=every, allow=allow, watch=watch)

    def print_text() -> None:
        for at, each in enumerate(found.data):
            if at:
                print()
            print_cluster(each, details=bool(now.verbose))

    return render.result(found, print_text, requested=True)
