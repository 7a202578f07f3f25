"""`yurt dev up [NAME]`: start a dev node, or follow the one that there is."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

from yurt.cli import app, render
from yurt.cli.app import verb
from yurt.cli.progress import watching
from yurt.cli.settings import options as setting_options
from yurt.dev.include_command import propose
from yurt.dev.names import dev_names
from yurt.model import settings
from yurt.model.settings_dev import DEV

if TYPE_CHECKING:
    from yurt.dev.follow import Followed
    from yurt.lifecycle.plan.request import Request

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
        function = click.option(flag, row.key, metavar=metavar, help=row.help)(function)
    return function


@verb(examples=EXAMPLES)
@click.argument("name", metavar="[NAME]", required=False, default="default", shell_complete=dev_names)
@click.option("--node", metavar="NODE", default="", help="Use this node; by default a lightly used one.")
@_dev_options
@click.option(
    "--from",
    "source",
    metavar="SOURCE",
    default="",
    help="Make a new workspace from a git URL, `project`, TIER:PATH, a folder or an archive, or from another CONTEXT.",
)
@click.option("--restore", metavar="VERSION", default="", help="Restore this version instead of the newest.")
@click.option("--no-wait", is_flag=True, help="Submit the job and do not wait until the workspace is ready.")
@setting_options(RESOURCES, ENVIRONMENT, settings.HOMES)
def up(name: str, **options: Any) -> int:
    """Start a dev node, or follow the one that there is.

    Allocates a node, restores the workspace on its disk, and waits until it is ready. The first time, the workspace is
    created, by default empty, and backed up. If the dev node is queued or running already, it is followed, and options
    for a new one are ignored.

    The node is the one that had the workspace last if it is free, else the least used one. Without --time, the time
    limit is 8 hours, or the maximum of the partition. Ctrl-C stops the waiting; the job stays.

    The job makes a backup every 30 minutes, and before it ends for any reason.
    """
    from yurt.dev import up as verbs
    from yurt.dev.status_command import print_detail
    from yurt.model.result import Interrupted

    now = app.current()
    asked = verbs.Asked(
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

            found = verbs.up(_request(options), asked, on_wait=on_wait, watch=watch)
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
