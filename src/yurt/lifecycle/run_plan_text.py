"""The plan that `yurt run --dry-run` prints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from yurt.cli import call, render

if TYPE_CHECKING:
    from yurt.lifecycle.run import PlanView

ENVIRONMENT = "environment() { # from your context and your flags"
"""The first line of the part of job.sh that sets up modules and environments."""

EVERY_RUN = (
    *(
        f"export {name}="
        for name in (
            "YURT_RUN_ID",
            "YURT_RUN_DIR",
            "YURT_CONTEXT",
            "YURT_OUTPUTS",
            "YURT_CHECKPOINTS",
            "YURT_PARAMS",
            "YURT_SWEEP_ID",
            "PYTHONDONTWRITEBYTECODE",
            "PYTHONUNBUFFERED",
        )
    ),
    '[ -n "${MLFLOW_TRACKING_URI-}" ] || ',
)
MOST_LINES = 12
"""How many lines of job.sh and of its values `--dry-run` shows without -v."""
MOST_SETS = 3
"""For how many tasks `--dry-run` shows the parameters."""


def print_plan(view: PlanView) -> None:
    """Print what would be submitted: the settings with their sources, and the job script."""
    from yurt.cli.run_facts import stage_lines

    run = view.run
    what = f"run {run.id} on {run.context}"
    if run.tasks:
        what = f"sweep {run.id} on {run.context}: {render.count(run.tasks, 'task')}"
    print(f"# {what}; nothing was submitted")
    print(f"# folder: {render.plain(run.folder)}")
    files = f"{render.count(run.code.files, 'file')}, {render.amount(run.code.size)}"
    code = f"{run.code.tree} ({files})" if run.code.tree else "none"
    print(f"# code: {code}")
    _print_sets(view.sets)
    for line in stage_lines(run):
        print(f"# stage {render.plain(line)}")
    if run.secrets:
        print(f"# secrets (names only): {' '.join(run.secrets)}")
    for each in run.settings:
        print(f"# {each.key}: {render.plain(render.value(each.value))} ({render.plain(each.source)})")
    if call.current().verbose:
        for name, value in view.sbatch_variables.items():
            print(f"# {name}: {render.plain(value)} (environment on {run.context}; for what yurt does not set)")
    print(f"# {render.plain(view.submitted_as)}")
    script, data = view.script, view.data
    if not call.current().verbose:
        script, data = _own_lines(script), _own_data(data)
    parts = f"\n# --- job.sh\n\n{script}\n# --- data\n\n{data}\n"
    render.verbatim(parts.encode(errors="backslashreplace"))
    if not call.current().verbose:
        print(f"# job.sh has {len(view.script.splitlines())} lines; see all of it with `yurt -v run --dry-run …`")


def _print_sets(sets: Sequence[dict[str, Any]]) -> None:
    """Print the parameters of the first tasks of a sweep."""
    for number, each in enumerate(sets[:MOST_SETS]):
        pairs = " ".join(f"{key}={render.readable(value)}" for key, value in each.items())
        print(f"# task {number}: {render.short(pairs, render.LONGEST_VALUE)}")
    if len(sets) > MOST_SETS:
        print(f"# … {render.count(len(sets) - MOST_SETS, 'more task')}")


def _own_lines(script: str) -> str:
    """Return the lines of a job script that differ between runs: #SBATCH lines and the environment."""
    lines = script.splitlines()
    kept = [line for line in lines if line.startswith("#SBATCH")]
    if ENVIRONMENT in lines:
        start = lines.index(ENVIRONMENT)
        kept += lines[start : lines.index("}", start) + 1]
    return _cut(kept)


def _own_data(data: str) -> str:
    """Return the values of a run without the variables that every run gets."""
    return _cut([line for line in data.splitlines() if not line.startswith(EVERY_RUN)])


def _cut(lines: list[str]) -> str:
    more = len(lines) - MOST_LINES
    return "\n".join([*lines[:MOST_LINES], *([f"# … {render.count(more, 'more line')}"] if more > 0 else [])]) + "\n"
