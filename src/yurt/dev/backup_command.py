"""`yurt dev backup [NAME]`: back up a workspace now."""

from __future__ import annotations

import click

from yurt.cli import app, render
from yurt.cli.app import verb
from yurt.dev.names import dev_names


@verb(examples=["yurt dev backup", "yurt dev backup paper --json", "yurt dev backup --check"], context_help="")
@click.argument("name", metavar="[NAME]", required=False, default="default", shell_complete=dev_names)
@click.option("--check", is_flag=True, help="Read all versions first, and save again what is damaged.")
def backup(name: str, check: bool) -> int:
    """Back up the workspace of a dev node now.

    Waits until the backup is complete and was read back. Only what changed since the last one is written. Backups are
    also made by the dev node itself, every 30 minutes and before it ends. Each also reads a part of the old ones
    again, --check reads all. Files whose backup is damaged are saved again from the workspace, as a new version.
    """
    from yurt.cli.progress import watching_late
    from yurt.dev import backup as verbs

    with watching_late() as watch:
        found = verbs.backup(name, context=app.current().context, check=check, watch=watch)

    def print_text() -> None:
        done, version = found.data, found.data.version
        if done.damaged is not None:
            names = ", ".join(f"v{each}" for each in done.damaged)
            print(f"damaged: {names}" if names else "no version is damaged")
        if version is None:
            print("nothing to back up")
        elif not done.changed:
            print(f"nothing changed since v{version.number} of {render.moment(version.time)}")
        else:
            verified = "verified" if version.verified else "not verified"
            sizes = f"{render.amount(version.size)}, {render.amount(version.new_size)} new"
            print(f"v{version.number}: {sizes}, {version.seconds:.1f} s, {verified}")
        if version is not None and version.note:
            print(render.plain(f"note: {version.note}"))

    return render.result(found, print_text)
