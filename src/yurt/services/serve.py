"""serve: run a program that listens in a job, and reach it from this machine."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, TypeVar

import click
import msgspec

from yurt.cli import call, render
from yurt.cli.browser import browser
from yurt.cli.completers import run_names
from yurt.cli.declare import WITH_DASHES, argument, option, verb
from yurt.cli.progress import watching
from yurt.cli.settings import options as setting_options
from yurt.config import contexts, paths, unused_keys
from yurt.config.lock import locked
from yurt.contexts import connect, folders
from yurt.contexts.project import Project
from yurt.lifecycle.outbox.enqueue import enqueue
from yurt.lifecycle.plan.plan import plan
from yurt.lifecycle.plan.request import Request
from yurt.lifecycle.refresh.refresh import refresh_contexts
from yurt.lifecycle.signals import signals_interrupt
from yurt.lifecycle.steps import STEPS
from yurt.lifecycle.syncing import sync_first
from yurt.model import layout, settings
from yurt.model.progress import Watch, unwatched
from yurt.model.result import Interrupted, Result
from yurt.services import find, programs
from yurt.services import ports as forward
from yurt.services.open_service import Screen, leave, reach
from yurt.services.programs import Wanted
from yurt.services.screen import visiting
from yurt.services.views import Service
from yurt.store import Entry, Store

if TYPE_CHECKING:
    from yurt.lifecycle.plan.request import Request
    from yurt.services.programs import Wanted


def serve(
    request: Request,
    wanted: Wanted,
    *,
    context: str = "",
    local: int = 0,
    browser: Callable[[str], bool] | None,
    screen: Screen,
    watch: Watch = unwatched,
) -> Result[Service]:
    """Start a service, or reach the unfinished one of this name, until it ends or the user leaves.

    RefusedError: the site rejects it, or it failed. Interrupted: Ctrl-C before it could be reached.
    """
    if wanted.program == programs.COMMAND:
        programs.check(wanted.words)
    if request.name:
        programs.check_name(request.name)
    port = forward.listen(local) if local else 0
    request = msgspec.structs.replace(
        request, words=(), name=request.name or programs.name(wanted), service=programs.configuration(wanted)
    )
    store = folders.store()
    submitted: list[str] = []
    with signals_interrupt():
        try:
            entry, warnings = _found(store, request, context, screen=screen, watch=watch, on_kept=submitted.append)
            (entry,), notes = sync_first(store, [entry], watch=watch)
        except KeyboardInterrupt:
            raise Interrupted(leave(store, submitted[0], screen) if submitted else "nothing was submitted") from None
        return reach(store, entry, port=port, browser=browser, screen=screen, warnings=[*warnings, *notes])


def _is_cancelled(entry: Entry) -> bool:
    """Return whether a service was cancelled and its job is terminating."""
    files = connect.named_backend(entry.run.context).files
    return bool(entry.run.folder) and files.read(entry.run.folder, layout.CANCEL) is not None


def _found(
    store: Store, request: Request, context: str, *, screen: Screen, watch: Watch, on_kept: Callable[[str], None]
) -> tuple[Entry, list[str]]:
    """Return the unfinished service of this name in this project and context, or submit one; and warnings.

    One process at a time, so that two commands do not submit two jobs.
    """
    place = contexts.site(contexts.current_name(context))
    label = Project(request.project).label
    with locked(paths.data_home() / "services" / f"{request.name}@{place.name}"):
        if find.same(store, request.name, place.name, label) is not None:
            refreshed = refresh_contexts(store, [place.name], steps=STEPS, watch=watch)
            if place.name in refreshed.failed:
                raise refreshed.failed[place.name]
            present = find.same(store, request.name, place.name, label)
            if present is not None and not _is_cancelled(present):
                on_kept(present.run.id)
                screen.word(f"service '{request.name}' is {present.status.state} already as run {present.run.id}")
                return present, refreshed.warnings
        planned = plan(place, request, index=store, offline=False, watch=watch)
        entry, notes = enqueue(store, place, planned, on_kept=on_kept, watch=watch)
        return entry, [*unused_keys.first_time(place.name), *notes]


_Decorated = TypeVar("_Decorated", bound=Callable[..., Any])

OWN = (settings.LABELS, settings.RESOURCES, settings.ENVIRONMENT, settings.FILES, settings.CODE, settings.HOMES)


@verb(examples=["yurt serve jupyter --gpus 1 --time 4h", "yurt serve jupyter --folder '$SCRATCH'"])
@option("--folder", metavar="PATH", default="", help="Start in this folder of the site (default: the run's copy).")
@visiting
@setting_options(*OWN)
def jupyter_command(**options: Any) -> int:
    """Run JupyterLab in a job, and open it here.

    Starts in a copy of the project's files in the run folder. Notebooks that you save there stay there; `yurt
    fetch` downloads what has changed. JupyterLab must be in the environment of the project.

    Kernels open no ports, so the debugger of JupyterLab is switched off.
    """
    from yurt.services.service_logs import notebooks_of

    return start(options, notebooks_of(options["folder"], call.current().context))


@verb(
    examples=["yurt serve tensorboard --logdir '$SCRATCH/logs'", "yurt serve tensorboard @last-sweep baseline"],
)
@argument("runs", nargs=-1, metavar="[RUN...]", shell_complete=run_names)
@option("--logdir", metavar="PATH", default="", help="Show the event files in this folder of the site.")
@visiting
@setting_options(*OWN)
def tensorboard_command(runs: tuple[str, ...], **options: Any) -> int:
    """Run TensorBoard in a job, where the event files are.

    For event files that are too large to download; `yurt tensorboard` downloads them and needs no job. The runs must be
    on one context. TensorBoard must be in the environment of the project.
    """
    from yurt.services.service_logs import logs_of

    wanted, context = logs_of(runs, options["logdir"], call.current().context)
    return start(options, wanted, context=context)


@verb(examples=["yurt serve mlflow --store '$SCRATCH/mlflow.db'", "yurt serve mlflow @last"])
@argument("run", metavar="[RUN]", required=False, default="", shell_complete=run_names)
@option("--store", metavar="PATH", default="", help="An SQLite file or a folder `mlruns` of the site.")
@visiting
@setting_options(*OWN)
def mlflow_command(run: str, **options: Any) -> int:
    """Run MLflow in a job, where its store is.

    For a store with artifacts that are too large to download; `yurt mlflow` brings runs together on this machine and
    needs no job. With RUN, shows what that run has logged. MLflow must be in the environment of the project.
    """
    from yurt.services.service_logs import store_of

    wanted, context = store_of(run, options["store"], call.current().context)
    return start(options, wanted, context=context)


def service_names(_ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Return the services in yurt.yaml that complete a word."""
    from yurt.errors import YurtError
    from yurt.services.named_service import names

    try:
        return [name for name in names() if name.startswith(incomplete)]
    except YurtError:
        return []


@verb(
    command_class=WITH_DASHES,
    examples=["yurt serve run -- python -m http.server {port}", "yurt serve run --gpus 1 app"],
)
@argument("words", nargs=-1, metavar="NAME | -- PROGRAM...", shell_complete=service_names)
@option("--open-port", is_flag=True, help="Start it even if other users of the node can reach its port.")
@visiting
@setting_options(*OWN)
def run_command(words: tuple[str, ...], **options: Any) -> int:
    """Run any program that listens in a job, and open it here.

    PROGRAM says where to listen: {socket} stands for the path of a unix socket, {port} for a port. A program that
    listens on a port gets a network of its own, which other users of the node cannot reach, and in which it reaches
    nothing else. NAME is a service in yurt.yaml.
    """
    from yurt.services.named_service import wanted

    found, entry = wanted(list(words), open_port=options["open_port"])
    return start(options, found, entry=entry)


def start(options: dict[str, Any], wanted: Wanted, *, context: str = "", entry: str = "") -> int:
    """Start a service, and stay until the user leaves, or until it ends. `entry`: its name in yurt.yaml."""
    from yurt.model.result import Interrupted
    from yurt.services.screen import Screen

    call.enable_gc()
    now = call.current()
    with ExitStack() as submission:
        watch = submission.enter_context(watching())
        screen = Screen(on_exit=options["on_exit"], begin=submission.close)
        try:
            done = serve(
                _request(options, entry, wanted),
                wanted,
                context=context or now.context,
                local=options["local"] or 0,
                browser=browser(wanted=not options["no_browser"]),
                screen=screen,
                watch=watch,
            )
        except Interrupted as error:
            submission.close()
            screen.clear()
            print(f"yurt: interrupted; {render.escaped(error.note)}", file=sys.stderr, flush=True)
            return 130
        finally:
            screen.clear()
    return done.exit_code


def _request(options: dict[str, Any], entry: str, wanted: Wanted) -> Request:
    from yurt.lifecycle.plan.request import Request
    from yurt.lifecycle.run_request import flags

    return Request(
        words=(),
        flags=flags(options),
        name=options["name"] or entry,
        entry=entry or wanted.program,
        tags=options["tags"],
        note=options["note"],
        include=options["include"],
        exclude=options["exclude"],
        snapshot=not options["no_snapshot"],
        secrets=options["secrets"],
    )
