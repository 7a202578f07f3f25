"""`yurt prune`: remove finished runs and unused environments from their sites."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import click

from yurt.cli import app, render
from yurt.cli.app import context_names, run_names, verb
from yurt.cli.listing import listing
from yurt.model.progress import unwatched

if TYPE_CHECKING:
    from yurt.lifecycle.prune import Candidate, Pruned
    from yurt.lifecycle.prune_all import Cleared
    from yurt.lifecycle.prune_envs import PrunedEnv
    from yurt.model.result import Result

EXAMPLES = [
    "yurt prune --older-than 30d",
    "yurt prune --dry-run @last-sweep",
    "yurt prune x7q4z 8m2kd --yes",
    "yurt prune --context big --state failed --unfetched",
    "yurt prune --all big",
]


def _states(_ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    from yurt.model.run import FINAL

    return sorted(state for state in FINAL if state.startswith(incomplete))


@verb(examples=EXAMPLES, context_help=app.ONLY_CONTEXT)
@click.argument("runs", nargs=-1, metavar="[RUN]...", shell_complete=run_names)
@click.option(
    "--older-than", metavar="TIME", help="Remove only what finished, or was last used, longer ago than this: 30d, 12h."
)
@click.option(
    "--state",
    "states",
    multiple=True,
    metavar="STATE",
    shell_complete=_states,
    help="Remove only runs with this final state; repeatable.",
)
@click.option(
    "--all",
    "everything",
    metavar="CONTEXT",
    shell_complete=context_names,
    help="Remove everything that yurt stored on a context.",
)
@click.option("--unfetched", is_flag=True, help="Also remove results that were not fetched.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@click.option("--dry-run", is_flag=True, help="Show what would be removed without removing it.")
def prune(
    runs: tuple[str, ...], everything: str | None, unfetched: bool, yes: bool, dry_run: bool, **filters: Any
) -> int:
    """Remove finished runs and unused environments from their sites.

    Removes the folders of the given runs, or of all finished runs, after listing them and asking for confirmation.
    Runs that have not finished are never removed. Runs whose results exist only on the site are kept unless
    --unfetched is given. The runs stay in the index, and `yurt show` reports that the folder was removed. A sweep is
    removed with all its tasks.

    Unless runs or --state are given, environments that no run has used for 30 days, or for the time of --older-than,
    are removed too, with uploaded wheels that no other environment needs. Those that a job in the queue needs are kept.
    A later run builds a removed environment again, with the same packages.

    The exit code is 5 if a run that you name is kept; if its folder was removed before, it is 0.
    """
    from yurt.errors import UserError

    if dry_run and yes:
        raise UserError("--dry-run and --yes cannot be combined", code="usage", hint="use `yurt prune --dry-run`")
    agreed = None if dry_run else yes
    if everything is not None:
        if runs or filters["older_than"] or filters["states"] or app.current().context not in ("", everything):
            raise UserError(
                "--all cannot be combined with runs, --older-than, --state or another context",
                code="usage",
                hint=f"use `yurt prune --all {everything}`",
            )
        return _all(everything, unfetched=unfetched, yes=agreed)
    return _some(runs, unfetched=unfetched, yes=agreed, **filters)


def _some(
    runs: Sequence[str], *, older_than: str | None, states: Sequence[str], unfetched: bool, yes: bool | None
) -> int:
    from yurt.cli.progress import watching
    from yurt.lifecycle import prune as verbs

    age = _age(older_than)
    _check(states)
    app.enable_gc()
    with watching() as watch:
        found = verbs.survey(
            runs,
            context=app.current().context,
            states=states,
            older_than=age,
            unfetched=unfetched,
            watch=watch,
        )
    going = bool(found.data.removed or found.data.environments)
    question = f"permanently remove {_amounts(found.data)}?"
    if yes is None:
        return render.result(found, lambda: _print(found.data), requested=True)
    if going and not _agreed(yes, lambda: _print(found.data), question):
        return _not_confirmed(found, lambda: _print(found.data))
    app.current().warnings += found.warnings
    with watching() if going else nullcontext(unwatched) as watch:
        done = verbs.remove(found.data, named=bool(runs), older_than=age, watch=watch)
    return render.result(done, lambda: _print(done.data))


def _all(context: str, *, unfetched: bool, yes: bool | None) -> int:
    from yurt.cli.progress import watching
    from yurt.lifecycle import prune_all as verbs

    app.enable_gc()
    with watching() as watch:
        found = verbs.survey(context, unfetched=unfetched, watch=watch)
    if not found.data.projects:
        return render.result(found, lambda: print(f"nothing to remove on {context}"))
    question = f"permanently remove everything from {context}?"
    if yes is None:
        return render.result(found, lambda: _print_all(found.data), requested=True)
    if not _agreed(yes, lambda: _print_all(found.data), question):
        return _not_confirmed(found, lambda: _print_all(found.data))
    with watching() as watch:
        done = verbs.remove(found.data, watch=watch)
    return render.result(done, lambda: _print_all(done.data))


def _age(text: str | None) -> float | None:
    from yurt.errors import UserError
    from yurt.model.resources import parse_seconds

    try:
        return None if text is None else float(parse_seconds(text))
    except ValueError:
        raise UserError(
            f"--older-than: '{text}' is not a duration", code="usage", hint="for example: `--older-than 30d`"
        ) from None


def _check(states: Sequence[str]) -> None:
    from yurt.errors import UserError, one_of
    from yurt.model.run import FINAL

    for state in states:
        if state not in FINAL:
            hint = f"use {one_of(sorted(FINAL))}"
            raise UserError(f"--state: '{state}' is not a final state", code="usage", hint=hint)


def _agreed(yes: bool, show: Callable[[], None], question: str) -> bool:
    """Return whether the user agrees: with --yes, or by answering on a terminal. Abort if the answer is no."""
    if yes:
        return True
    if app.current().json or not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    show()
    if not click.confirm(question, default=False, err=True):
        raise click.Abort
    return True


def _not_confirmed(found: Result[Any], show: Callable[[], None]) -> int:
    app.current().warnings.append("nothing was removed; run the command again with `--yes`")
    render.result(found, show, requested=True)
    return 2


def _print(found: Pruned) -> None:
    now = time.time()

    def row(each: Candidate, *, named: bool) -> list[str]:
        results = "none" if not each.files else "fetched" if each.fetched else "not fetched"
        age = render.span(now - (each.ended or each.created))
        name = [each.name] if named else []
        return [each.id, *name, each.context, each.state, age, render.amount(each.size), results]

    verb = "removed" if found.done else "would remove"
    for title, group in ((verb, found.removed), ("kept", found.kept)):
        if group:
            print(f"{title}: {render.count(len(group), 'run')}, {render.amount(sum(each.size for each in group))}")
            named = any(each.name for each in group)
            columns = ["run", *(["name"] if named else []), "context", "state", "age", "size", "results"]
            rows = [row(each, named=named) for each in group]
            reasons = [each.kept for each in group] if group is found.kept else []
            if reasons and not render.visual():  # a pipe gets one line for each run
                columns, rows = [*columns, "reason"], [[*line, why] for line, why in zip(rows, reasons, strict=True)]
                reasons = []
            styles = [""] * len(rows)
            listing(columns, rows, styles=styles, styled="", shrinks=["name"], numbers=["size"], notes=reasons)
    if found.environments:
        _print_environments(found.environments, verb)
    if not found.removed and not found.environments:
        print("nothing to remove", file=sys.stderr)


def _amounts(found: Pruned) -> str:
    """Return what is removed, in words: 3 runs (12 MB) and 1 environment (3.4 GB)."""
    groups = (
        (found.removed, "run", len(found.removed)),
        (found.environments, "environment", sum(each.what == "environment" for each in found.environments)),
    )
    texts = []
    for group, word, number in groups:
        if group:
            what = render.count(number, word) if number else "files of environments"
            texts.append(f"{what} ({render.amount(sum(each.size for each in group))})")
    return " and ".join(texts)


NAMES = {"environment": "", "replaced": "its older copy", "wheels": "unused wheels"}


def _print_environments(found: Sequence[PrunedEnv], verb: str) -> None:
    print(f"{verb}: unused environments, {render.amount(sum(each.size for each in found))}")
    rows = [
        [
            " ".join(filter(None, (each.address, NAMES[each.what]))),
            each.context,
            each.project,
            each.title,
            render.amount(each.size),
            str(each.files),
            render.moment(each.used) if each.used else "",
        ]
        for each in found
    ]
    titles = ["environment", "context", "project", "from", "size", "files", "last used"]
    render.table(titles, rows, numbers=["size", "files"])


def _print_all(found: Cleared) -> None:
    runs = sum(each.runs for each in found.projects)
    size = render.amount(sum(each.size for each in found.projects))
    done = "removed" if found.done else "would remove"
    print(f"{done} from {found.context}, {render.plain(found.folder)}: {render.count(runs, 'run')}, {size}")
    rows = [[each.project, str(each.runs), render.amount(each.size)] for each in found.projects]
    render.table(["project", "runs", "size"], rows, numbers=["runs", "size"])
    for folder in found.left:
        why = "the backups of dev nodes" if folder == f"{found.folder}/workspaces" else "files that yurt did not create"
        print(f"kept, because it contains {why}: {render.plain(folder)}")
