"""serve stop: end services."""

from __future__ import annotations

from collections.abc import Sequence

from yurt.cli import call, render
from yurt.cli.declare import argument, option, verb
from yurt.config import contexts
from yurt.contexts import folders
from yurt.lifecycle.cancel import Cancelled, cancel_runs, print_cancelled
from yurt.model.result import Result
from yurt.services import find


def stop(words: Sequence[str], *, every: bool = False, context: str = "") -> Result[list[Cancelled]]:
    """End the services of these names, or with these ids of runs; without names, the only one, or all with `every`.

    The request is saved first: the next yurt command repeats it if a site does not respond.
    """
    store = folders.store()
    if context:
        contexts.site(context)
    if every:
        entries = [entry for entry in find.unfinished(store) if context in ("", entry.run.context)]
    else:
        entries = [find.named(store, word, context, prefer=bool(word)) for word in words or [""]]
    done, unreachable = cancel_runs(store, entries) if entries else ([], None)
    warnings = [unreachable.message] if unreachable is not None else []
    return Result(kind="runs-cancelled", data=done, warnings=warnings, exit_code=4 if unreachable is not None else 0)


@verb(examples=["yurt serve stop jupyter", "yurt serve stop --all"], context_help="Only services on this context.")
@argument("names", nargs=-1, metavar="[NAME...]")
@option("--all", "every", is_flag=True, help="End all services.")
def stop_command(names: tuple[str, ...], every: bool) -> int:
    """End services.

    Cancels their jobs, as `yurt cancel` does. NAME is the name of a service or the id of its run; without it,
    the only service is ended. If the site is unreachable, the next
    yurt command that reaches it ends them.
    """
    from yurt.errors import UserError

    if every and names:
        raise UserError("--all and names cannot be combined", code="usage", hint="leave out one of them")
    found = stop(names, every=every, context=call.current().context)
    return render.result(found, lambda: print_cancelled(found.data))
