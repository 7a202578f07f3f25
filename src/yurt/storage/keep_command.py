"""`yurt storage keep`: copy results to a lasting tier."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from yurt.cli import app, render
from yurt.cli.app import run_names, verb
from yurt.cli.filters import folded

if TYPE_CHECKING:
    from yurt.storage.keep import Kept

EXAMPLES = [
    "yurt storage keep x7q4z",
    "yurt storage keep @last-sweep --to project",
    "yurt storage keep alpha:scratch:datasets/cifar",
]


@verb(examples=EXAMPLES, context_help="Look for PLACE on this context instead of the current one.")
@click.argument("names", nargs=-1, required=True, metavar="RUN|PLACE...", shell_complete=run_names)
@click.option("--to", metavar="TIER", default="", help="Copy to this storage tier; by default project, else home.")
@click.option("--all", "everything", is_flag=True, help="Also copy checkpoints.")
def keep(names: tuple[str, ...], to: str, everything: bool) -> int:
    """Copy results to a storage tier that is not purged.

    The site copies the results itself, into yurt-kept in the tier: what a run wrote to its working directory, its
    outputs, its logs and its record. A sweep keeps its started tasks. Nothing is copied if it does not fit. Repeating
    the command continues an interrupted copy, and adds what has changed. `yurt fetch` uses the copy when the run folder
    is gone.

    PLACE is a file or a folder: TIER:PATH, CONTEXT:TIER:PATH or CONTEXT:/PATH.
    """
    from yurt.cli.progress import watching
    from yurt.storage import keep as verbs

    app.enable_gc()
    with watching() as watch:
        found = verbs.keep(names, to=to, everything=everything, context=app.current().context, watch=watch)
    return render.result(found, lambda: _print(found.data))


def _print(done: list[Kept]) -> None:
    for name, places in folded([each.what for each in done]).items():
        some = [done[at] for at in places]
        first = some[0]
        what = name if len(some) == 1 else f"{name}: {len(some)} tasks"
        where = first.path if len(some) == 1 else first.path.rpartition("/tasks/")[0]
        if not any(each.copied for each in some):
            print(render.plain(f"{what}: {where} on {first.context} is up to date"))
            continue
        files, size = sum(each.files for each in some), sum(each.size for each in some)
        amount = f"{render.count(files, 'file')}, {render.amount(size)}"
        print(render.plain(f"{what}: {amount} to {where} on {first.context}"))
