"""`yurt fetch RUN…`: bring results home."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from yurt.cli import app, render
from yurt.cli.app import run_names, verb
from yurt.cli.filters import FILTER, folded

EXAMPLES = [
    "yurt fetch -",
    "yurt fetch x7q4z 8m2kd --only '*.json' --only plots/",
    "yurt fetch x7q4z --all --to ~/best",
    "yurt fetch @last-sweep --filter lr=0.1",
]


@verb(examples=EXAMPLES)
@click.argument("runs", nargs=-1, required=True, metavar="RUN...", shell_complete=run_names)
@click.option(
    "--only",
    multiple=True,
    metavar="GLOB",
    help="Only files of this name, or in this folder where it ends with a slash; may be repeated.",
)
@click.option("--all", "everything", is_flag=True, help="The whole run folder: also logs, checkpoints, records.")
@click.option("--to", "folder", metavar="DIR", help="Where to, instead of results/RUN; of several runs to DIR/RUN.")
@FILTER
def fetch(
    runs: tuple[str, ...], only: tuple[str, ...], everything: bool, folder: str | None, filters: tuple[str, ...]
) -> int:
    """Bring here what runs wrote into $YURT_OUTPUTS, also while they run.

    Files that are here already are not sent again, and a transfer that was cut goes on where it was. The folder
    `results` keeps itself out of git, so that results do not travel back as code. `--all` goes to results/RUN.all.
    Of a sweep its tasks come, those that have begun, each as results/SWEEP.NUMBER.
    """
    from yurt.cli.progress import watching
    from yurt.errors import UserError
    from yurt.verbs import fetch as verbs

    if "" in (folder, *only):
        raise UserError("an empty name was given", code="usage", hint="yurt fetch --help")
    app.stay()
    to = Path(folder).expanduser() if folder else None
    with watching() as watch:
        found = verbs.fetch(runs, filters=filters, only=only, everything=everything, folder=to, watch=watch)
    return render.result(found, lambda: _print(found.data))


def _print(done: list[Any]) -> None:
    for name, places in folded([each.id for each in done]).items():
        each = done[places[0]]
        if len(places) > 1:
            _print_tasks(name, [done[at] for at in places])
        elif not each.target:
            print(f"{each.id}: it has written nothing into its outputs")
        elif not each.files:
            print(f"{each.id}: nothing new; {render.plain(each.target)} has it all")
        else:
            print(f"{each.id}: {_files(each.files)}, {render.amount(each.size)}, into {render.plain(each.target)}")


def _print_tasks(sweep: str, done: list[Any]) -> None:
    """What came of many tasks of a sweep, in a line."""
    targets = [each.target for each in done if each.target]
    files = sum(each.files for each in done)
    said = f"{sweep}: {len(done)} tasks, "
    if not targets:
        print(f"{said}which have written nothing into their outputs")
        return
    where = render.plain(f"{targets[0].rpartition(sweep)[0]}{sweep}.*")
    if not files:
        print(f"{said}nothing new; {where} have it all")
    else:
        print(f"{said}{_files(files)}, {render.amount(sum(each.size for each in done))}, into {where}")


def _files(count: int) -> str:
    return "1 file" if count == 1 else f"{count} files"
