"""`yurt fetch RUN…`: download results."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

from yurt.cli import call, render
from yurt.cli.completers import run_names
from yurt.cli.declare import argument, option, verb
from yurt.cli.filters import FILTER, folded

EXAMPLES = [
    "yurt fetch -",
    "yurt fetch x7q4z 8m2kd --only '*.json' --only plots/",
    "yurt fetch x7q4z --all --to ~/best",
    "yurt fetch @last-sweep --filter lr=0.1",
]


@verb(examples=EXAMPLES, context_help="")
@argument("runs", nargs=-1, required=True, metavar="RUN...", shell_complete=run_names)
@option(
    "--only",
    multiple=True,
    metavar="GLOB",
    help="Download only files that match GLOB; a trailing slash selects a folder; repeatable.",
)
@option(
    "--all",
    "everything",
    is_flag=True,
    help="Download the complete run folder, including logs, checkpoints and yurt's own files.",
)
@option("--to", "folder", metavar="DIR", help="Download to DIR instead of results/RUN; to DIR/RUN for several runs.")
@FILTER
def fetch(
    runs: tuple[str, ...], only: tuple[str, ...], everything: bool, folder: str | None, filters: tuple[str, ...]
) -> int:
    """Download the results of runs.

    Downloads the results of each run to results/RUN: what it wrote to its working directory, and $YURT_OUTPUTS. With
    --all, the whole run folder to results/RUN.all. Also works while a run is running. Files that did not change are
    not transferred again, and an interrupted transfer continues. Fetched files stay out of snapshots. For a sweep,
    each started task is downloaded to results/SWEEP.NUMBER. A file of your project that --to DIR would replace is kept
    as NAME~.

    Runs and tasks in which no file matches --only are named; the exit code is 3 only if no file matches at all.
    """
    from yurt.cli.progress import watching
    from yurt.errors import UserError
    from yurt.lifecycle import fetch as verbs

    if folder == "":
        raise UserError("--to is empty", code="usage", hint="for example: `--to results`")
    if "" in only:
        raise UserError("--only is empty", code="usage", hint="for example: `--only '*.json'`")
    call.enable_gc()
    to = Path(folder).expanduser() if folder else None
    with watching() as watch:
        found = verbs.fetch(runs, filters=filters, only=only, everything=everything, folder=to, watch=watch)
    return render.result(found, lambda: _print(found.data, found.unfinished))


def _print(done: list[Any], unfinished: Collection[str]) -> None:
    for name, places in folded([each.id for each in done]).items():
        each = done[places[0]]
        if len(places) > 1:
            _print_tasks(name, [done[at] for at in places], unfinished)
        elif not each.target:
            print(f"{each.id}: no results{' yet' if each.id in unfinished else ''}")
        elif not each.files:
            print(f"{each.id}: {render.plain(each.target)} is up to date")
        else:
            files = f"{render.count(each.files, 'file')}, {render.amount(each.size)}"
            print(f"{each.id}: {files} to {render.plain(each.target)}")


def _print_tasks(sweep: str, done: list[Any], unfinished: Collection[str]) -> None:
    """Print one line for many tasks of a sweep."""
    targets = [each.target for each in done if each.target]
    files = sum(each.files for each in done)
    start = f"{sweep}: {len(done)} tasks, "
    if not targets:
        print(f"{start}no results{' yet' if any(each.id in unfinished for each in done) else ''}")
        return
    where = render.plain(f"{targets[0].rpartition(sweep)[0]}{sweep}.*")
    if not files:
        print(f"{start}{where} are up to date")
    else:
        print(f"{start}{render.count(files, 'file')}, {render.amount(sum(each.size for each in done))} to {where}")
