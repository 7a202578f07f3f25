"""`yurt fetch RUN…`: bring results home."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from yurt.cli import frame, render
from yurt.cli.frame import run_names, verb

EXAMPLES = [
    "yurt fetch -",
    "yurt fetch x7q4z 8m2kd --only '*.json' --only plots/",
    "yurt fetch x7q4z --all --to ~/best",
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
def fetch(runs: tuple[str, ...], only: tuple[str, ...], everything: bool, folder: str | None) -> int:
    """Bring here what runs wrote into $YURT_OUTPUTS, also while they run.

    Files that are here already are not sent again, and a transfer that was cut goes on where it was. The folder
    `results` keeps itself out of git, so that results do not travel back as code. `--all` goes to results/RUN.all.
    """
    from yurt.cli.progress import watching
    from yurt.errors import UserError
    from yurt.verbs import fetch as verbs
    from yurt.verbs.places import store
    from yurt.verbs.which import single, which

    if "" in (folder, *only):
        raise UserError("an empty name was given", code="usage", hint="yurt fetch --help")
    frame.stay()
    index = store()
    entries = single(index, which(index, runs))
    to = Path(folder).expanduser() if folder else None
    wanted = verbs.Wanted(only=only, everything=everything, folder=to, several=len(entries) > 1)
    with watching() as watch:
        done, errors = verbs.fetch(index, entries, wanted, watch=watch)
    if errors and not done:
        raise _all_said(errors)
    frame.current().warnings += [error.message for error in errors]
    render.show("runs-fetched", done, lambda: _print(done))
    return max((error.exit_code for error in errors), default=0)


def _all_said(errors: list[Any]) -> Any:
    """The first error; what the others say is added to it."""
    first, *others = errors
    first.message = "; ".join([first.message, *(each.message for each in others)])
    return first


def _print(done: list[Any]) -> None:
    for each in done:
        if not each.target:
            print(f"{each.id}: it has written nothing into its outputs")
        elif not each.files:
            print(f"{each.id}: nothing new; {render.plain(each.target)} has it all")
        else:
            files = "1 file" if each.files == 1 else f"{each.files} files"
            print(f"{each.id}: {files}, {render.amount(each.size)}, into {render.plain(each.target)}")
