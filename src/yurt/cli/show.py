"""`yurt show RUN`: everything known of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from yurt.cli import app, render
from yurt.cli.app import run_names, verb
from yurt.cli.run_facts import head, print_facts, print_parts, settings, took
from yurt.model import layout

if TYPE_CHECKING:
    from yurt.model.run import Run

EXAMPLES = [
    "yurt show -",
    "yurt show x7q4z --json",
    "yurt show @last-sweep --sort -accuracy --filter state=completed",
    "yurt show @last-sweep --plot loss --over lr",
    "yurt show @last-sweep --csv > sweep.csv",
    "yurt show @last-sweep.3",
]


@verb(examples=EXAMPLES)
@click.argument("run", metavar="RUN", shell_complete=run_names)
@click.option("--cached", is_flag=True, help="Ask no site: show what was last known.")
@click.option(
    "--sort",
    metavar="KEY",
    default="",
    help="Of a sweep: by task, state, took, exit, a parameter or a metric; -KEY: descending.",
)
@click.option(
    "--filter",
    "filters",
    multiple=True,
    metavar="KEY=VALUE",
    help="Of a sweep: only tasks with this state or parameter.",
)
@click.option(
    "-n", "--limit", metavar="N", type=click.IntRange(1), help="Of a sweep: how many tasks; 50 on a terminal."
)
@click.option("--csv", "as_csv", is_flag=True, help="Of a sweep: only its table, as CSV.")
@click.option("--plot", metavar="METRIC", default="", help="Of a sweep: draw the last values of a metric.")
@click.option("--over", metavar="PARAMETER", default="", help="What to draw it over.")
def show(run: str, cached: bool, **options: Any) -> None:
    """Show a run: what was asked for, where each setting came from, how it stands.

    Of a sweep, also a table of its tasks: outcome, parameters and last metrics. SWEEP.NUMBER is one of these.
    """
    from yurt.cli.progress import watching_late
    from yurt.verbs import show as verbs

    table = verbs.Table(**{key: value for key, value in options.items() if key != "as_csv"})
    with watching_late() as watch:
        found = verbs.show(run, cached=cached, table=table, on_found=lambda meant: _check(meant, options), watch=watch)
    if isinstance(found, verbs.ShownSweep):
        from yurt.cli.show_sweep import show_sweep

        show_sweep(found, limit=options["limit"], as_csv=options["as_csv"])
        return
    render.result(found, lambda: _print(found.data, found.here), asked=True)


def _check(run: Run, options: dict[str, Any]) -> None:
    """UserError where options contradict each other, or what the run is."""
    if not run.tasks:
        _only_for_sweeps(run.id, options)
    elif any(options[key] for key in ("as_csv", "plot", "over")):
        from yurt.cli.show_sweep import check

        check(run.id, options, as_json=app.current().json)


def _only_for_sweeps(run: str, options: dict[str, Any]) -> None:
    names = {"filters": "--filter", "as_csv": "--csv"}
    for key, value in options.items():
        if value:
            from yurt.errors import UserError

            text = f"{names.get(key, f'--{key}')} is for sweeps, and {run} is one run"
            raise UserError(text, code="usage", hint=f"yurt show {run}")


def _print(found: Any, here: Any) -> None:
    run, status = found.run, found.status
    facts = [
        *head(found, here),
        ("submitted", render.moment(here.submitted)),
        ("started", render.moment(status.started)),
        ("ended", render.moment(status.ended)),
        ("took", took(status)),
        ("exit code", "" if status.exit_code is None else str(status.exit_code)),
        ("started again", _again(run, status)),
        ("looked at", render.moment(here.refreshed_at)),
        ("on site", _on_site(found.on_site, here)),
        ("kept here", _kept(here.kept)),
    ]
    metrics = [(each.name, each.value, f"step {each.step}" * (each.step is not None)) for each in found.metrics]
    print_facts(facts)
    print_parts(
        metrics=metrics, parameters=[(key, value, "") for key, value in run.params.items()], settings=settings(run)
    )


def _again(run: Any, status: Any) -> str:
    most = [
        f"{run.restart_policy.max_requeues} times after its limit" if run.restart_policy.max_requeues else "",
        f"{run.restart_policy.retries} times after a failure" if run.restart_policy.retries else "",
    ]
    allowed = " and ".join(part for part in most if part)
    if not allowed:
        return str(status.restarts or "")
    return f"{status.restarts} times (at most {allowed})"


def _on_site(parts: Any, here: Any) -> str:
    """What is left of a run on its site."""
    if parts is None:
        return ""
    if not parts.there:
        said = "nothing: its folder is gone"
    else:
        said = (
            ", ".join(f"{name} {_amount(each)}" for name, each in parts.parts.items() if each.files != 0)
            or "no results"
        )
    return said + f" ({render.moment(here.folder_seen_at)})"


def _amount(each: Any) -> str:
    if each.bytes is None:
        return "(large)"
    return render.amount(each.bytes) + (f" in {each.files} files" if each.files > 1 else "")


def _kept(kept: Any) -> str:
    """What of a run is on this machine, whatever becomes of its folder."""
    if kept is None:
        return ""
    files = [
        (layout.OUT_LOG, kept.out, kept.out_size),
        (layout.ERR_LOG, kept.err, kept.err_size),
        (layout.METRICS, kept.metrics, kept.metrics_size),
    ]
    said = [
        name if len(text) >= size else f"{render.amount(len(text))} of {render.amount(size)} of {name}"
        for name, text, size in files
        if size
    ]
    return ", ".join(said) or "its record"
