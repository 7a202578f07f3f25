"""`yurt cancel RUN…`: cancel runs."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING

from yurt.cli import render
from yurt.cli.completers import run_names
from yurt.cli.declare import argument, verb
from yurt.cli.filters import FILTER, counted, folded
from yurt.cli.progress import watching
from yurt.model.progress import unwatched

if TYPE_CHECKING:
    from yurt.lifecycle.cancel import Cancelled


@verb(examples=["yurt cancel -", "yurt cancel x7q4z 8m2kd", "yurt cancel @last-sweep --filter lr=0.1"], context_help="")
@argument("runs", nargs=-1, required=True, metavar="RUN...", shell_complete=run_names)
@FILTER
def cancel(runs: tuple[str, ...], filters: tuple[str, ...]) -> int:
    """Cancel runs.

    Cancels runs that are running, queued, or saved and not yet submitted. --filter selects tasks of sweeps and
    cancels them in one request. If the site is unreachable, the request is saved, and the next yurt command that
    reaches the site cancels the runs.
    """
    from yurt.lifecycle import cancel as verbs

    with watching() if filters else nullcontext(unwatched) as watch:
        found = verbs.cancel(runs, filters=filters, watch=watch)

    return render.result(found, lambda: print_cancelled(found.data))


def print_cancelled(done: Sequence[Cancelled]) -> None:
    """Print the outcome for each run; one line for the tasks of a sweep."""
    for name, places in folded([each.id for each in done]).items():
        each = done[places[0]]
        if len(places) > 1:
            late = "" if each.delivered else f"; {_late(each, 'them')}"
            print(f"{name}: {len(places)} tasks, {counted(done[at].state for at in places)}{late}")
        elif not each.delivered:
            print(f"{each.id}: {_late(each, 'it')}")
        else:
            print(f"{each.id} {render.with_reason(each.state, render.escaped(each.note))}")


def _late(each: Cancelled, what: str) -> str:
    note = render.escaped(each.note)
    return f"not cancelled yet ({note}); the next yurt command that reaches {each.context} will cancel {what}"
