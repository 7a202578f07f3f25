"""`yurt home profile`: show or edit the Unison profile of the homes."""

from __future__ import annotations

from pathlib import Path

import click

from yurt.cli import render
from yurt.cli.app import verb
from yurt.errors import UserError

EXAMPLES = ["yurt home profile", "yurt home profile --edit", "yurt home profile --path"]


@verb(examples=EXAMPLES, context_help="")
@click.option("--edit", is_flag=True, help="Open the profile in $VISUAL, $EDITOR or vi.")
@click.option("--path", is_flag=True, help="Print only where the profile is.")
@click.option(
    "--skip-unreadable/--no-skip-unreadable",
    "skip",
    default=None,
    help="Skip files that you cannot read, with a warning, or let a sync fail that has any (default).",
)
def profile(edit: bool, path: bool, skip: bool | None) -> int:
    """Show or edit the Unison profile: which files to sync, and how.

    The part between yurt's two lines is rewritten by yurt. Add lines of your own outside of it, for example
    `ignore = Path data`, or `ignorenot = Path .config` to include a hidden folder. They are kept. The profile is on
    this machine, or on the login host of the hub if this machine has no home in sync.

    While a file cannot be read, no sync is good, and runs that wait for one stay held. With --skip-unreadable, recorded
    in homes.yaml, such files are skipped with a warning.
    """
    from yurt.homes import change_profile as verbs

    if edit + path + (skip is not None) > 1:
        raise UserError("--edit, --path and --skip-unreadable cannot be combined", code="usage", hint="use one of them")
    if skip is not None:
        done = verbs.skip_unreadable(skip)
        words = "are skipped with a warning" if skip else "let a sync fail"
        return render.result(done, lambda: print(f"files that cannot be read {words}"))
    if edit:
        done = verbs.edit(_open)
        what = "changed" if done.data.changed else "unchanged"
        return render.result(done, lambda: print(render.plain(f"{done.data.path} {what}")))
    found = verbs.show()

    def print_text() -> None:
        place = "" if found.data.place == "local" else f" on {found.data.place}"
        if path:
            print(render.plain(found.data.path))
        else:
            print(render.plain(f"# {found.data.path}{place}"))
            print("\n".join(render.plain(line) for line in found.data.text.splitlines()))

    return render.result(found, print_text, requested=True)


def _open(file: Path) -> None:
    from yurt.contexts.edit_command import open_editor

    open_editor(file)
