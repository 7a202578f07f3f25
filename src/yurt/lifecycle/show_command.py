"""`yurt show RUN`: a run or a sweep in detail."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from yurt.cli import call, completers, render
from yurt.cli.completers import run_names
from yurt.cli.declare import argument, option, verb
from yurt.cli.filters import FILTER
from yurt.cli.run_facts import head, print_facts, print_parts, settings, took
from yurt.cli.values import Number
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
    "yurt show - --usage",
]


@verb(examples=EXAMPLES, context_help="")
@argument("run", metavar="RUN", shell_complete=run_names)
@option("--cached", is_flag=True, help="Show cached data without querying the site.")
@option(
    "--sort",
    metavar="KEY",
    default="",
    shell_complete=completers.columns,
    help="Sort tasks by task, state, took, exit, a parameter or a metric; use -KEY for descending order.",
)
@FILTER
@option("-n", "--limit", metavar="N", type=Number(1), help="Show at most N tasks; 50 on a terminal by default.")
@option("--usage", is_flag=True, help="Plot CPUs, memory and GPUs that a run used over time.")
@option("--csv", "as_csv", is_flag=True, help="Print only the table of tasks, as CSV.")
@option("--plot", metavar="METRIC", default="", help="Plot the last values of a metric.")
@option(
    "--over",
    metavar="PARAMETER",
    default="",
    shell_complete=completers.parameters,
    help="Parameter on the x axis of --plot.",
)
def show(run: str, cached: bool, usage: bool, **options: Any) -> None:
    """Show a run in detail.

    Shows its state, its command, each setting with its source and, after the end, its first result files. For a sweep,
    also prints a table of the tasks with their states, parameters and last metrics. Use SWEEP.NUMBER for one task.
    --usage plots what a single run used over time; a finished task keeps only the totals.
    --sort, --filter, --limit, --csv, --plot and --over apply only to sweeps.
    """
    from yurt.cli.progress import watching_late
    from yurt.lifecycle import show as verbs

    table = verbs.Table(**{key: value for key, value in options.items() if key != "as_csv"})
    with watching_late() as watch:
        found = verbs.show(
            run,
            cached=cached,
            table=table,
            usage=usage,
            on_found=lambda record: _check(record, options, usage=usage),
            watch=watch,
        )
    if isinstance(found, verbs.ShownSweep):
        from yurt.lifecycle.show_sweep_text import show_sweep

        show_sweep(found, limit=options["limit"], as_csv=options["as_csv"])
        return
    render.result(found, lambda: _print(found.data, found.here), requested=True)


def _check(run: Run, options: dict[str, Any], *, usage: bool) -> None:
    """Raise UserError if options contradict each other or do not apply to the run."""
    if usage and run.tasks:
        from yurt.errors import UserError

        text = f"--usage is only for single runs and tasks, but {run.id} is a sweep"
        raise UserError(text, code="usage", hint=f"for example: `yurt show {run.id}.0 --usage`")
    if not run.tasks:
        _only_for_sweeps(run.id, options)
    elif any(options[key] for key in ("as_csv", "plot", "over")):
        from yurt.lifecycle.show_sweep_text import check

        check(run.id, options, as_json=call.current().json)


def _only_for_sweeps(run: str, options: dict[str, Any]) -> None:
    names = {"filters": "--filter", "as_csv": "--csv"}
    for key, value in options.items():
        if value:
            from yurt.errors import UserError

            option = names.get(key, f"--{key}")
            text = f"{option} is only for sweeps, but {run} is a single run"
            raise UserError(text, code="usage", hint=f"use `yurt show {run}`")


def _print(found: Any, here: Any) -> None:
    from yurt.cli.usage_text import print_curves, used

    run, status = found.run, found.status
    if found.usage_curve is not None:
        print_curves(run, found.usage_curve)
        return
    facts = [
        *head(found, here),
        ("submitted", render.moment(here.submitted)),
        ("started", render.moment(status.started)),
        ("finished", render.moment(status.ended)),
        ("took", took(status)),
        ("used", used(run, found.usage)),
        ("wrote", _wrote(status)),
        ("exit code", "" if status.exit_code is None else str(status.exit_code)),
        ("restarts", _restarts(run, status)),
        ("refreshed", render.moment(here.refreshed_at)),
        ("on site", _on_site(found.on_site, here)),
        ("in index", _saved(here.kept)),
    ]
    metrics = [(each.name, each.value, f"step {each.step}" * (each.step is not None)) for each in found.metrics]
    print_facts(facts)
    _print_results(found.on_site)
    print_parts(
        metrics=metrics, parameters=[(key, value, "") for key, value in run.params.items()], settings=settings(run)
    )


LISTED = 10
"""Maximum number of result files that are printed."""


def _print_results(parts: Any) -> None:
    """Print the first result files on the site, with their sizes."""
    if parts is None or not parts.files:
        return
    shown = parts.files[:LISTED]
    sizes = [render.amount(each.bytes) for each in shown]
    room = max(map(len, sizes))
    print("\nresults")
    for each, size in zip(shown, sizes, strict=True):
        print(f"  {size:>{room}}  {render.plain(each.path)}")
    counts = [parts.parts[name].files for name in (layout.OUTPUTS, layout.WORK) if name in parts.parts]
    if None in counts:
        print("  and more")
    elif (more := sum(counts) - len(shown)) > 0:
        print(f"  and {more} more")


def _restarts(run: Any, status: Any) -> str:
    limits = [
        f"{run.restart_policy.max_requeues} after the time limit" if run.restart_policy.max_requeues else "",
        f"{run.restart_policy.retries} after a failure" if run.restart_policy.retries else "",
    ]
    allowed = " and ".join(part for part in limits if part)
    if not allowed:
        return str(status.restarts or "")
    return f"{status.restarts} (at most {allowed})"


def _wrote(status: Any) -> str:
    """Return what the run had written when it ended."""
    if status.result_files is None or status.result_bytes is None:
        return ""
    if not status.result_files:  # the bytes are those of empty folders
        return "no files"
    return f"{render.amount(status.result_bytes)} in {render.count(status.result_files, 'file')}"


def _on_site(parts: Any, here: Any) -> str:
    """Return what the run folder on the site contains."""
    if parts is None:
        return ""
    if not parts.there:
        text = "run folder not found"
    else:
        text = (
            ", ".join(f"{name} {_amount(each)}" for name, each in parts.parts.items() if each.files != 0)
            or "no results"
        )
    return text + f" ({render.moment(here.folder_seen_at)})"


def _amount(each: Any) -> str:
    if each.bytes is None:
        return "(large)"
    return render.amount(each.bytes) + (f" in {each.files} files" if each.files > 1 else "")


def _saved(kept: Any) -> str:
    """Return what the index on this machine contains of the output of a run."""
    if kept is None:
        return ""
    files = [
        (layout.OUT_LOG, kept.out, kept.out_size),
        (layout.ERR_LOG, kept.err, kept.err_size),
        (layout.METRICS, kept.metrics, kept.metrics_size),
    ]
    parts = [
        name if len(text) >= size else f"{render.amount(len(text))} of {render.amount(size)} of {name}"
        for name, text, size in files
        if size
    ]
    return ", ".join(parts) or "the record of the run"
