"""run: plan a run of a command, and submit it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import msgspec

from yurt.cli import call, completers, render
from yurt.cli.completers import run_names
from yurt.cli.declare import argument, option, verb
from yurt.cli.progress import watching
from yurt.cli.settings import options as setting_options
from yurt.cli.values import Choice, Number
from yurt.config import contexts, facts, neptune, unused_keys
from yurt.contexts import connect, folders
from yurt.errors import UnreachableError, YurtError
from yurt.lifecycle.outbox.pending import cancel_saved
from yurt.lifecycle.plan.plan import plan
from yurt.lifecycle.plan.request import Planned, Request
from yurt.model import layout, settings
from yurt.model.context import Context
from yurt.model.progress import Watch, unwatched
from yurt.model.result import Result
from yurt.model.run import Plan, Run
from yurt.model.settings_storage import OUTPUT
from yurt.store import Entry, Store
from yurt.store.connection import INDEX_CODES

if TYPE_CHECKING:
    from yurt.backends.base import Runs
    from yurt.lifecycle.plan.request import Request
    from yurt.model.facts import Facts
    from yurt.model.race import Mode
    from yurt.model.run import After
    from yurt.store import Entry


class PlanView(msgspec.Struct, frozen=True, kw_only=True):
    """The plan of a run or sweep: its record, the submit command, and the files to upload."""

    run: Run
    sets: list[dict[str, Any]]
    """Parameters of each task of a sweep."""
    submitted_as: str
    script: str
    data: str
    uploads: dict[str, int]
    """Size of each file in bytes; the code is uploaded only if the context does not have it yet."""
    sbatch_variables: dict[str, str] = {}
    """Options of sbatch in the environment on the site, as of its last probe; those of yurt replace them."""


def run(
    request: Request,
    *,
    context: str = "",
    after: Sequence[str] = (),
    after_any: Sequence[str] = (),
    notify: str = "",
    on_kept: Callable[[str], None] = lambda _run: None,
    on_held: Callable[[Entry], None] = lambda _entry: None,
    watch: Watch = unwatched,
) -> Result[Entry]:
    """Plan a run, save it, and submit it, after all runs saved before it.

    After `on_kept` was called with its id, the run is not lost: if it cannot be submitted now, a later yurt command
    submits it. RefusedError: the site rejects the run; nothing is saved. `notify` is how to notify the user when the
    run has finished. A run that waits for a home sync is passed to `on_held` before the sync, which follows.
    """
    from yurt.lifecycle.outbox.enqueue import enqueue

    try:
        cancel_saved(folders.known_store(), contexts.current_name(context))
        place, planned, known = _planned(request, context, after, after_any, watch)
        index = known or folders.store()
        if notify:
            index.note_notice(planned.plan.run.id, notify)
        entry, warnings = enqueue(index, place, planned, on_kept=on_kept, watch=watch)
        if entry.run.home_sync:
            from yurt.lifecycle.syncing import sync_first

            (entry,), notes = sync_first(index, [entry], on_held=on_held, watch=watch)
            warnings += notes
    except YurtError as error:
        _note_refused(error)
        raise
    notes = [*unused_keys.first_time(place.name), *neptune.first_time(entry.run.settings)]
    return Result(kind="run", data=entry, warnings=[*notes, *warnings, *_advice(index, entry.run)])


def race(
    candidates: Sequence[tuple[str, Request]],
    mode: Mode | None = None,
    *,
    after: Sequence[str] = (),
    after_any: Sequence[str] = (),
    notify: str = "",
    on_kept: Callable[[str], None] = lambda _run: None,
    on_held: Callable[[Entry], None] = lambda _entry: None,
    watch: Watch = unwatched,
) -> Result[Entry]:
    """Plan one run for each candidate, a context and its request, and submit them as a race: the first to start wins.

    Nothing is submitted unless all of them can be planned, but those whose site does not respond. Otherwise as `run`.
    """
    from yurt.lifecycle.race import first_cost
    from yurt.lifecycle.races.submit import submit

    try:
        places, plans, absent = [], [], list[str]()
        for context, request in candidates:
            cancel_saved(folders.known_store(), contexts.current_name(context))
            try:
                place, planned, _known = _planned(request, context, after, after_any, watch)
            except UnreachableError as error:  # it needs something that only its site knows, such as its environment
                absent.append(f"{error.message}; the race goes on without {context}")
                if len(absent) == len(candidates):
                    raise
                continue
            places.append(place)
            plans.append(planned)
        index = folders.store()
        entry, warnings = submit(index, places, plans, mode, notify=notify, on_kept=on_kept, watch=watch)
        members = index.several(index.candidates(entry.run.id))
        if any(each.run.home_sync for each in members):
            from yurt.lifecycle.syncing import sync_first

            on_held(entry)
            _members, notes = sync_first(index, members, watch=watch)
            warnings += notes
    except YurtError as error:
        _note_refused(error)
        raise
    entry = index.get(entry.run.id) or entry
    unused = [text for place in places for text in unused_keys.first_time(place.name)]
    told = [*unused, *neptune.first_time(entry.run.settings), *first_cost(index, entry.run.id)]
    return Result(kind="run", data=entry, warnings=[*told, *absent, *warnings])


def _note_refused(error: YurtError) -> None:
    """Record that this run is not the last run: then `-` does not mean the one before it."""
    if error.code in INDEX_CODES:
        return  # the index is what failed, perhaps after a long wait
    with suppress(YurtError):
        if (known := folders.known_store()) is not None:
            known.note_refused(error.message)


def _advice(index: Store, run: Run) -> list[str]:
    from yurt.lifecycle.advice import advice

    return advice(index, run)


def preview(
    request: Request,
    *,
    context: str = "",
    after: Sequence[str] = (),
    after_any: Sequence[str] = (),
    watch: Watch = unwatched,
) -> Result[PlanView]:
    """Return what `run` would submit. Submits and saves nothing."""

    place, planned, _known = _planned(request, context, after, after_any, watch, offline=False)
    view = _view(planned.plan, connect.backend(place).runs, facts.load(place))
    return Result(kind="plan", data=view, warnings=[*unused_keys.all_of(place.name), *planned.warnings])


def _planned(
    request: Request,
    context: str,
    after: Sequence[str],
    after_any: Sequence[str],
    watch: Watch,
    *,
    offline: bool = True,
) -> tuple[Context, Planned, Store | None]:
    """Plan a run. A plan that fails creates nothing, not even an empty index."""
    place = contexts.site(contexts.current_name(context))
    known = folders.known_store()
    if after or after_any:
        known = known or folders.store()
        follows = [
            *_follows(known, after, place.name, ended=False),
            *_follows(known, after_any, place.name, ended=True),
        ]
        request = msgspec.structs.replace(request, after=follows)
    return place, plan(place, request, index=known, offline=offline, watch=watch), known


def _follows(index: Store, names: Sequence[str], context: str, *, ended: bool) -> list[After]:
    from yurt.lifecycle.outbox.dependencies import following
    from yurt.lifecycle.select import which

    return following(which(index, names), context, ended=ended) if names else []


def _view(plan: Plan, runs: Runs, known: Facts | None) -> PlanView:
    preview = runs.preview(plan)
    return PlanView(
        run=plan.run,
        sets=plan.sets,
        submitted_as=preview.command,
        script=preview.files[layout.JOB].decode(),
        data=preview.files[layout.DATA].decode(errors="backslashreplace"),
        uploads={"code": plan.run.code.size, **{name: len(each) for name, each in preview.files.items()}},
        sbatch_variables=known.sbatch_variables if known is not None else {},
    )


EXAMPLES = [
    "yurt run train.py -- --lr 0.1",
    "yurt run --context alpha --gpus a100:1 --mem 8G --time 2h -f train.py",
    "yurt run --name warm-up --tag paper python -m pkg.train",
    "yurt run job.sbatch",
    "yurt run --secret HF_TOKEN train.py",
    "yurt run --grid lr=0.1,0.01 --grid seed=1..3 train.py",
    "yurt run --spec sweep.py",
    "yurt run --race alpha,beta train.py",
    "yurt run --context best --time 4h train.py",
    "yurt run --dry-run train.py",
]


@verb(examples=EXAMPLES, command_class="yurt.lifecycle.run_click:Run", interspersed=False)
@argument(
    "words",
    nargs=-1,
    metavar="[SCRIPT|COMMAND]... [-- PARAMS...]",
    shell_complete=completers.files,
)
@setting_options(settings.LABELS, settings.RESOURCES, settings.ENVIRONMENT)
@option(
    "--param",
    "params",
    multiple=True,
    metavar="KEY=VALUE",
    help="Pass --KEY VALUE to the script, or KEY=VALUE with Hydra; repeatable.",
)
@option(
    "--grid",
    multiple=True,
    metavar="KEY=V1,V2",
    help="Sweep over all combinations of values; a value can be a range (1..3) or a file (@FILE).",
)
@option(
    "--zip",
    "zipped",
    multiple=True,
    metavar="KEY=V1,V2",
    help="Sweep over values in lockstep: the first of each key, then the second, and so on.",
)
@option(
    "--config",
    "config",
    metavar="FILE",
    shell_complete=completers.files,
    help="Read parameters from FILE, such as neptune.yaml or yurt.yaml.",
)
@option(
    "--spec",
    metavar="FILE.py",
    shell_complete=completers.files,
    help="Read experiments from an mrunner-style Python file.",
)
@option(
    "--base_image",
    metavar="IMAGE",
    help="Docker image, as in mrunner. Not used yet: use --container for an image on the site.",
)
@option(
    "--style",
    metavar="STYLE",
    type=Choice(["options", "hydra"]),
    help="How the script gets parameters: options (--KEY VALUE) or hydra (KEY=VALUE); detected by default.",
)
@option("--shuffle", is_flag=True, help="Shuffle the sweep.")
@option("--seed", metavar="N", type=Number(), help="Random seed for --shuffle.")
@option("--limit", metavar="N", type=Number(1), help="Run only the first N parameter sets.")
@setting_options(settings.SWEEP, settings.FILES)
@option(
    "--largest-file",
    metavar="MB",
    type=Number(1),
    help="Maximum size of a single file in the snapshot, in MB (default: 50).",
)
@setting_options(settings.CODE, OUTPUT)
@option(
    "--stage",
    multiple=True,
    metavar="NAME=PLACE",
    help="Copy or unpack PLACE, such as project:cifar, to $YURT_STAGE/NAME on the disk of the node; repeatable.",
)
@option(
    "--stage-out",
    multiple=True,
    metavar="NAME[=PLACE]",
    help="Copy $YURT_STAGE/NAME back after the end, to the outputs of the run or to PLACE/RUN; repeatable.",
)
@option("--copy", is_flag=True, help="Copy the code into the run folder instead of linking it.")
@option("--hold", is_flag=True, help="Submit the job on hold; release it with `yurt release RUN`.")
@setting_options(settings.HOMES)
@option(
    "--after",
    multiple=True,
    metavar="RUN",
    shell_complete=run_names,
    help="Start after RUN has completed successfully; repeatable.",
)
@option(
    "--after-any",
    multiple=True,
    metavar="RUN",
    shell_complete=run_names,
    help="Start after RUN has finished in any state; repeatable.",
)
@setting_options(settings.RESTARTS)
@option(
    "--race",
    "race",
    multiple=True,
    metavar="CONTEXT,CONTEXT",
    help="Submit it to several contexts; it runs where it starts first. CONTEXT:partition=NAME changes a resource.",
)
@option(
    "--race-mode",
    type=Choice(["arbiter", "grant"]),
    help="How jobs of a race find out who was first: arbiter asks a cluster by ssh, grant waits for a yurt command.",
)
@option("--notify", is_flag=True, help="Show a desktop notification when the run has finished.")
@option(
    "--notify-with",
    metavar="COMMAND",
    help="Run COMMAND locally when the run has finished; YURT_RUN_ID and YURT_STATE are set.",
)
@option("--follow", "-f", is_flag=True, help="Follow the output until the run has finished.")
@option("--wait", is_flag=True, help="Wait until the run has finished.")
@option("--dry-run", is_flag=True, help="Show the plan without submitting; with -v, also the whole job script.")
def run_command(**options: Any) -> int:
    """Run a script or a command on a context.

    The run uses a snapshot of the code on disk. yurt's options come before the script; everything after the script is
    passed to it. A .py file is run with `python`. #SBATCH lines in the script are used; command-line options override
    them. With --spec, the script can be omitted if the spec file names one.

    With --context best, it runs where `yurt where` expects it to start first, of the contexts that the project lists
    as `contexts` in yurt.yaml, or of all clusters that were probed.

    With --quiet, prints only the run id, unless --follow is given.
    """
    from yurt.lifecycle import run_request
    from yurt.lifecycle.submitted_text import after_sync, on_interrupt, submitted_line, wait_or_follow

    request = run_request.request(options, run_command.parameters)
    after = {"after": options["after"], "after_any": options["after_any"]}
    where = {"context": call.current().context, **after}
    candidates = run_request.candidates(options, request)
    if not candidates and (call.current().context or os.environ.get("YURT_CONTEXT")) == "best":
        request, where["context"] = _best(request)
    if options["dry_run"]:
        from yurt.lifecycle.run_plan_text import print_plan

        with watching() as watch:
            plan = preview(request, **where, watch=watch)
        return render.result(plan, lambda: print_plan(plan.data), requested=True)
    notify = options["notify_with"] or ("desktop" if options["notify"] else "")
    with on_interrupt(submitted_line) as sending, watching() as watch:
        how: dict[str, Any] = {"notify": notify, "on_kept": sending.on_kept, "on_held": sending.on_held, "watch": watch}
        mode = options["race_mode"]
        done = race(candidates, mode, **after, **how) if candidates else run(request, **where, **how)
    following = options["follow"] or _always_followed(done.data)
    staying = following or options["wait"]
    if staying and call.current().json:
        call.current().warnings += done.warnings
    else:
        only_id = call.current().quiet and not following
        line = done.data.run.id if only_id else after_sync(done.data) if sending.held else submitted_line(done.data)
        render.result(done, lambda: print(line), requested=only_id)
    return wait_or_follow([done.data], follow=following, kind="run") if staying else 0


def _best(request: Request) -> tuple[Request, str]:
    """Return the request for the context where it starts first, and that context, and say which it is."""
    from yurt.where import where

    now = call.current()
    if not where.is_best(now.context):
        return request, now.context
    with watching() as watch:
        found = where.best(request, watch=watch)
    if now.json:
        now.warnings.append(found.text)
    elif not now.quiet:
        print(render.escaped(found.text), file=sys.stderr, flush=True)
    return found.request, found.context


def _always_followed(entry: Entry) -> bool:
    """Return whether the context sets `cmd_type: srun`, which follows every run."""
    return any(each.key == "cmd_type" and each.value == "srun" for each in entry.run.settings)
