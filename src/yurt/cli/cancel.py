"""`yurt cancel RUN…`: end runs."""

from __future__ import annotations

import click

from yurt.cli import render
from yurt.cli.frame import run_names, verb


@verb(examples=["yurt cancel -", "yurt cancel x7q4z 8m2kd"])
@click.argument("runs", nargs=-1, required=True, metavar="RUN...", shell_complete=run_names)
def cancel(runs: tuple[str, ...]) -> int:
    """End runs: those that run, those in a queue, and those that have not gone out yet.

    Where the site is out of reach the wish is kept, and carried out with the next command that reaches it.
    """
    from yurt.verbs import cancel as verbs
    from yurt.verbs.places import store
    from yurt.verbs.which import which

    index = store()
    done, unreachable = verbs.cancel(index, which(index, runs))

    def for_people() -> None:
        for each in done:
            if not each.told:
                print(f"{each.id}: {each.context} is not told yet ({each.note}); it will be when it answers")
            else:
                print(f"{each.id} {each.state}" + (f": {each.note}" if each.note else ""))

    render.show("runs-cancelled", done, for_people)
    return 0 if unreachable is None else unreachable.exit_code
