"""`yurt prune`: remove runs that have ended from their sites."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from yurt.cli import app, render
from yurt.cli.app import context_names, run_names, verb

if TYPE_CHECKING:
    from yurt.verbs.prune import Candidate, Pruned
    from yurt.verbs.prune_all import Cleared

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


@verb(examples=EXAMPLES)
@click.argument("runs", nargs=-1, metavar="[RUN]...", shell_complete=run_names)
@click.option("--older-than", metavar="TIME", help="Only runs that ended longer ago than this: 30d, 12h.")
@click.option(
    "--state", "states", multiple=True, metavar="STATE", shell_complete=_states, help="Only runs that ended so."
)
@click.option(
    "--all", "everything", metavar="CONTEXT", shell_complete=context_names, help="All yurt left on a context."
)
@click.option("--unfetched", is_flag=True, help="Also the only copy of results that were not fetched.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--dry-run", is_flag=True, help="Only show what would go.")
def prune(
    runs: tuple[str, ...], everything: str | None, unfetched: bool, yes: bool, dry_run: bool, **filters: Any
) -> int:
    """Remove the folders of runs that have ended from their sites, after showing what would go.

    Without RUN, of all runs that have ended. A run that has not ended is never removed, nor is the only copy of
    results, unless --unfetched says so. What is known of a run stays here; `yurt show` says that its folder is gone.
    A sweep goes with all its tasks.
    """
    from yurt.errors import UserError

    if dry_run and yes:
        raise UserError("--dry-run and --yes: it can only be one", code="usage", hint="yurt prune --dry-run")
    agreed = None if dry_run else yes
    if everything is not None:
        if runs or filters["older_than"] or filters["states"] or app.current().context not in ("", everything):
            raise UserError(
                "--all takes a context and nothing else", code="usage", hint=f"yurt prune --all {everything}"
            )
        return _all(everything, unfetched=unfetched, yes=agreed)
    return _some(runs, unfetched=unfetched, yes=agreed, **filters)


def _some(
    words: Sequence[str], *, older_than: str | None, states: Sequence[str], unfetched: bool, yes: bool | None
) -> int:
    from yurt.cli.progress import watching
    from yurt.lifecycle.select import which
    from yurt.sites.folders import store
    from yurt.verbs import prune as verbs

    age = _age(older_than)
    _check(states)
    index = store()
    named = which(index, words)
    entries = verbs.select(index, named, context=app.current().context, states=states, older_than=age)
    app.stay()
    with watching() as watch:
        found = verbs.survey(index, entries, unfetched=unfetched, named=bool(named), watch=watch)
    going = [each for each in found if not each.kept]
    plan = verbs.Pruned(done=False, going=going, staying=[each for each in found if each.kept])
    question = f"remove {_runs(len(going))}, {render.amount(sum(each.size for each in going))}, for good?"
    if yes is None:
        render.show("runs-pruned", plan, lambda: _print(plan), asked=True)
        return 0
    if going and not _agreed(yes, lambda: _print(plan), question):
        return _not_asked(lambda: render.show("runs-pruned", plan, lambda: _print(plan), asked=True))
    errors = []
    if going:
        with watching() as watch:
            errors = verbs.remove(index, going, watch=watch)
    gone = [each for each in going if index.gone_at(each.id) is not None]
    done = verbs.Pruned(done=True, going=gone, staying=plan.staying)
    if errors and not gone:
        raise errors[0]
    app.current().warnings += [error.message for error in errors]
    render.show("runs-pruned", done, lambda: _print(done))
    return max((error.exit_code for error in errors), default=0)


def _all(context: str, *, unfetched: bool, yes: bool | None) -> int:
    from yurt.cli.progress import watching
    from yurt.sites.folders import store
    from yurt.verbs import prune_all as verbs

    index = store()
    app.stay()
    with watching() as watch:
        found = verbs.holdings(index, context, unfetched=unfetched, watch=watch)
    if not found.projects:
        render.show("context-cleared", found, lambda: print(f"yurt has nothing on {context}"))
        return 0
    question = f"remove all of it from {context}, for good?"
    if yes is None:
        render.show("context-cleared", found, lambda: _print_all(found), asked=True)
        return 0
    if not _agreed(yes, lambda: _print_all(found), question):
        return _not_asked(lambda: render.show("context-cleared", found, lambda: _print_all(found), asked=True))
    with watching() as watch:
        done = verbs.clear(index, found, watch=watch)
    render.show("context-cleared", done, lambda: _print_all(done))
    return 0


def _age(text: str | None) -> float | None:
    from yurt.errors import UserError
    from yurt.model.resources import parse_seconds

    try:
        return None if text is None else float(parse_seconds(text))
    except ValueError:
        raise UserError(f"--older-than: '{text}' is no time", code="usage", hint="for example 30d or 12h") from None


def _check(states: Sequence[str]) -> None:
    from yurt.errors import UserError
    from yurt.model.run import FINAL

    for state in states:
        if state not in FINAL:
            raise UserError(f"--state: no run ends as '{state}'", code="usage", hint=", ".join(sorted(FINAL)))


def _agreed(yes: bool, show: Any, question: str) -> bool:
    """Whether it may be done: said ahead, or asked of whoever is there to be asked."""
    if yes:
        return True
    if app.current().json or not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    show()
    if not click.confirm(question, default=False, err=True):
        raise click.Abort
    return True


def _not_asked(show: Any) -> int:
    app.current().warnings.append("nothing was removed: repeat the command with --yes to do so")
    show()
    return 2


def _runs(count: int) -> str:
    return "1 run" if count == 1 else f"{count} runs"


def _print(found: Pruned) -> None:
    now = time.time()

    def row(each: Candidate) -> list[str]:
        results = "none" if not each.files else "fetched" if each.fetched else "only there"
        age = render.span(now - (each.ended or each.created))
        return [each.id, each.context, each.state, age, render.amount(each.size), results]

    word = "removed" if found.done else "would go"
    for title, group in ((word, found.going), ("kept", found.staying)):
        if group:
            print(f"{title}: {_runs(len(group))}, {render.amount(sum(each.size for each in group))}")
            stays = group is found.staying
            columns = ["run", "context", "state", "age", "size", "results", *(["why"] if stays else [])]
            rows = [[*row(each), *([each.kept] if stays else [])] for each in group]
            render.table(columns, rows, numbers=["size"], folds=["why"])
    if not found.going:
        print("nothing to remove", file=sys.stderr)


def _print_all(found: Cleared) -> None:
    runs = sum(each.runs for each in found.projects)
    size = render.amount(sum(each.size for each in found.projects))
    print(f"{'removed' if found.done else 'would go'} from {found.context}, {found.folder}: {_runs(runs)}, {size}")
    rows = [[each.project, str(each.runs), render.amount(each.size)] for each in found.projects]
    render.table(["project", "runs", "size"], rows, numbers=["runs", "size"])
    for folder in found.left:
        print(f"left, because something in it is not yurt's: {render.plain(folder)}")
