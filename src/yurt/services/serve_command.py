"""`yurt serve jupyter|tensorboard|mlflow|NAME|-- PROGRAM…`: start a service, and open it here."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, TypeVar

import click

from yurt.cli import app, render
from yurt.cli.app import run_names, verb
from yurt.cli.browser import browser
from yurt.cli.dashes import WithDashes
from yurt.cli.option_types import Number
from yurt.cli.progress import watching
from yurt.cli.settings import options as setting_options
from yurt.model import settings

if TYPE_CHECKING:
    from yurt.lifecycle.plan.request import Request
    from yurt.services.programs import Wanted

_Decorated = TypeVar("_Decorated", bound=Callable[..., Any])

OWN = (settings.LABELS, settings.RESOURCES, settings.ENVIRONMENT, settings.FILES, settings.CODE, settings.HOMES)


def visiting(function: _Decorated) -> _Decorated:
    """Add the options of opening a service."""
    function = click.option(
        "--on-exit",
        type=click.Choice(["ask", "keep", "stop"]),
        default="ask",
        help="What Ctrl-C does to the job (default: ask; without a terminal, keep it).",
    )(function)
    function = click.option("--no-browser", is_flag=True, help="Print the URL and do not open a browser.")(function)
    return click.option(
        "--local", metavar="PORT", type=Number(1), help="The port of this machine (default: any free one)."
    )(function)


@verb(examples=["yurt serve jupyter --gpus 1 --time 4h", "yurt serve jupyter --folder '$SCRATCH'"])
@click.option(
    "--folder", metavar="PATH", default="", help="Start in this folder of the site (default: the run's copy)."
)
@visiting
@setting_options(*OWN)
def jupyter(**options: Any) -> int:
    """Run JupyterLab in a job, and open it here.

    Starts in a copy of the project's files in the run folder. Notebooks that you save there stay there; `yurt
    fetch` downloads what has changed. JupyterLab must be in the environment of the project.

    Kernels open no ports, so the debugger of JupyterLab is switched off.
    """
    from yurt.services.service_logs import notebooks_of

    return start(options, notebooks_of(options["folder"], app.current().context))


@verb(
    examples=["yurt serve tensorboard --logdir '$SCRATCH/logs'", "yurt serve tensorboard @last-sweep baseline"],
)
@click.argument("runs", nargs=-1, metavar="[RUN...]", shell_complete=run_names)
@click.option("--logdir", metavar="PATH", default="", help="Show the event files in this folder of the site.")
@visiting
@setting_options(*OWN)
def tensorboard(runs: tuple[str, ...], **options: Any) -> int:
    """Run TensorBoard in a job, where the event files are.

    For event files that are too large to download; `yurt tensorboard` downloads them and needs no job. The runs must be
    on one context. TensorBoard must be in the environment of the project.
    """
    from yurt.services.service_logs import logs_of

    wanted, context = logs_of(runs, options["logdir"], app.current().context)
    return start(options, wanted, context=context)


@verb(examples=["yurt serve mlflow --store '$SCRATCH/mlflow.db'", "yurt serve mlflow @last"])
@click.argument("run", metavar="[RUN]", required=False, default="", shell_complete=run_names)
@click.option("--store", metavar="PATH", default="", help="An SQLite file or a folder `mlruns` of the site.")
@visiting
@setting_options(*OWN)
def mlflow(run: str, **options: Any) -> int:
    """Run MLflow in a job, where its store is.

    For a store with artifacts that are too large to download; `yurt mlflow` brings runs together on this machine and
    needs no job. With RUN, shows what that run has logged. MLflow must be in the environment of the project.
    """
    from yurt.services.service_logs import store_of

    wanted, context = store_of(run, options["store"], app.current().context)
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
    cls=WithDashes,
    examples=["yurt serve run -- python -m http.server {port}", "yurt serve run --gpus 1 app"],
    context_settings={"ignore_unknown_options": False},
)
@click.argument("words", nargs=-1, metavar="NAME | -- PROGRAM...", type=click.UNPROCESSED, shell_complete=service_names)
@click.option("--open-port", is_flag=True, help="Start it even if other users of the node can reach its port.")
@visiting
@setting_options(*OWN)
def run(words: tuple[str, ...], **options: Any) -> int:
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
    from yurt.services import serve as verbs
    from yurt.services.screen import Screen

    app.enable_gc()
    now = app.current()
    with ExitStack() as submission:
        watch = submission.enter_context(watching())
        screen = Screen(on_exit=options["on_exit"], begin=submission.close)
        try:
            done = verbs.serve(
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
