"""`yurt serve stop [NAME…]`: end services."""

from __future__ import annotations

import click

from yurt.cli import app, render
from yurt.cli.app import verb
from yurt.lifecycle.cancel_command import print_cancelled


@verb(examples=["yurt serve stop jupyter", "yurt serve stop --all"], context_help="Only services on this context.")
@click.argument("names", nargs=-1, metavar="[NAME...]")
@click.option("--all", "every", is_flag=True, help="End all services.")
def stop(names: tuple[str, ...], every: bool) -> int:
    """End services.

    Cancels their jobs, as `yurt cancel` does. NAME is the name of a service or the id of its run; without it,
    the only service is ended. If the site is unreachable, the next
    yurt command that reaches it ends them.
    """
    from yurt.errors import UserError
    from yurt.services import stop_service as verbs

    if every and names:
        raise UserError("--all and names cannot be combined", code="usage", hint="leave out one of them")
    found = verbs.stop(names, every=every, context=app.current().context)
    return render.result(found, lambda: print_cancelled(found.data))
