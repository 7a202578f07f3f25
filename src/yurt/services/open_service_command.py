"""`yurt serve open [NAME]`: open a service that is running."""

from __future__ import annotations

import sys
from typing import Any

import click

from yurt.cli import app, render
from yurt.cli.app import verb
from yurt.cli.browser import browser
from yurt.services.serve_command import visiting


@verb(
    examples=["yurt serve open", "yurt serve open jupyter", "yurt serve open x7q4z --local 8888"],
    name="open",
    context_help="Only services on this context.",
)
@click.argument("name", metavar="[NAME]", required=False, default="")
@visiting
def open_(name: str, **options: Any) -> int:
    """Open a service that is running.

    Connects this machine to a service that was started here, or on another machine and imported with `yurt import`.
    Waits for it if it is queued. NAME is the name of a service or the id of its run; without it,
    the only service is
    opened, or the only one of this project. Ctrl-C asks whether the job stays.
    """
    from yurt.model.result import Interrupted
    from yurt.services import open_service as verbs
    from yurt.services.screen import Screen

    app.enable_gc()
    screen = Screen(on_exit=options["on_exit"])
    try:
        done = verbs.open_service(
            name,
            context=app.current().context,
            local=options["local"] or 0,
            browser=browser(wanted=not options["no_browser"]),
            screen=screen,
        )
    except Interrupted as error:
        screen.clear()
        print(f"yurt: interrupted; {render.escaped(error.note)}", file=sys.stderr, flush=True)
        return 130
    finally:
        screen.clear()
    return done.exit_code
