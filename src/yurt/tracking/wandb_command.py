"""`yurt wandb`: runs of W&B that were logged on sites without internet."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from yurt.cli import app, render
from yurt.cli.app import Group, run_names, verb

if TYPE_CHECKING:
    from yurt.tracking.wandb import WandbSynced


@click.group(cls=Group, examples=["yurt wandb sync"], context_help="")
def wandb() -> None:
    """Upload runs of W&B that were logged without internet.

    Where compute nodes have no internet, yurt sets WANDB_MODE=offline for runs. W&B then writes to $YURT_OUTPUTS/wandb.
    """


@verb(
    wandb,
    examples=["yurt wandb sync", "yurt wandb sync x7q4z @last-sweep", "yurt wandb sync --again x7q4z"],
    context_help="",
)
@click.option("--again", is_flag=True, help="Also upload what was uploaded before.")
@click.argument("runs", nargs=-1, metavar="[RUN]...", shell_complete=run_names)
def sync(runs: tuple[str, ...], *, again: bool) -> int:
    """Fetch offline runs of W&B and upload them with `wandb sync`.

    By default, takes all runs of this project whose offline runs were not uploaded yet. Each folder is uploaded once by
    your own wandb, whose output goes to standard error; what W&B does not accept is tried again next time. The key is
    that of your wandb login, or WANDB_API_KEY from the environment or from `yurt secret set WANDB_API_KEY`. A run that
    is still running is left for the next call.
    """
    from yurt.tracking import wandb as verbs

    app.enable_gc()
    found = verbs.sync(runs, again=again, on_output=_pass_on, watch=_say)
    return render.result(found, lambda: _print(found.data))


def _say(event: object) -> None:
    """Print what is being done; a bar would overwrite the output of wandb."""
    now = app.current()
    if sys.stderr.isatty() and not (now.json or now.quiet):
        print(render.plain(getattr(event, "text", "")), file=sys.stderr, flush=True)


def _pass_on(line: bytes) -> None:
    if app.current().quiet:
        return
    from yurt.cli.terminal import safe

    sys.stderr.flush()
    sys.stderr.buffer.write(safe(line, plain=app.plain()) if sys.stderr.isatty() else line)
    sys.stderr.buffer.flush()


def _print(found: WandbSynced) -> None:
    counts = [f"{len(found.synced)} synced", f"{found.skipped} skipped", f"{len(found.failed)} failed"]
    print(", ".join(counts + [f"{found.left} not tried"] * bool(found.left)))
    for each in found.failed:
        print(f"yurt: {each.run}: wandb sync {each.folder} failed: {render.escaped(each.error)}", file=sys.stderr)
    if found.unfinished:
        some = ", ".join(found.unfinished[:4]) + (" …" if len(found.unfinished) > 4 else "")
        print(f"{render.count(len(found.unfinished), 'run')} not finished yet: {some}", file=sys.stderr)
