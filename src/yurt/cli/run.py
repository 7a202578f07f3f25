"""`yurt run [OPTIONS] [SCRIPT|COMMAND]... [-- PARAMS...]`: submit a run or a sweep."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from yurt.cli import app, completers, render, run_race
from yurt.cli.app import run_names, verb
from yurt.cli.option_types import Number
from yurt.cli.progress import watching
from yurt.cli.settings import options as setting_options
from yurt.errors import UserError
from yurt.model import settings
from yurt.model.settings_storage import OUTPUT
from yurt.model.sizes import MB

if TYPE_CHECKING:
    from yurt.lifecycle.plan.request import Request
    from yurt.lifecycle.plan.sweep import Flags, SweepPlan
    from yurt.store import Entry
    from yurt.verbs.run import PlanView

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

EXAMPLES = [
    "yurt run train.py -- --lr 0.1",
    "yurt run --context alpha --gpus a100:1 --mem 8G --time 2h -f train.py",
    "yurt run --name warm-up --tag paper python -m pkg.train",
    "yurt run job.sbatch",
    "yurt run --secret HF_TOKEN train.py",
    "yurt run --grid lr=0.1,0.01 --grid seed=1..3 train.py",
    "yurt run --spec sweep.py",
    "yurt run --race alpha,beta train.py",
    "yurt run --context best --time 4h train.py",
    "yurt run --dry-run train.py",
]


class Run(app.Verb):
    """The command `run`: an unknown option after a swallowed script is an argument of the script."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        given = [*args]  # click empties the list
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption:
            from yurt.cli import run_mistakes

            run_mistakes.check_unparsed(given, self)
            raise


@verb(
    cls=Run,
    examples=EXAMPLES,
    context_settings={"ignore_unknown_options": False, "allow_interspersed_args": False},
)
@click.argument(
    "words",
    nargs=-1,
    metavar="[SCRIPT|COMMAND]... [-- PARAMS...]",
    type=click.UNPROCESSED,
    shell_complete=completers.files,
)
@setting_options(settings.LABELS, settings.RESOURCES, settings.ENVIRONMENT)
@click.option(
    "--param",
    "params",
    multiple=True,
    metavar="KEY=VALUE",
    help="Pass --KEY VALUE to the script, or KEY=VALUE with Hydra; repeatable.",
)
@click.option(
    "--grid",
    multiple=True,
    metavar="KEY=V1,V2",
    help="Sweep over all combinations of values; a value can be a range (1..3) or a file (@FILE).",
)
@click.option(
    "--zip",
    "zipped",
    multiple=True,
    metavar="KEY=V1,V2",
    help="Sweep over values in lockstep: the first of each key, then the second, and so on.",
)
@click.option(
    "--config",
    "config",
    metavar="FILE",
    shell_complete=completers.files,
    help="Read parameters from FILE, such as neptune.yaml or yurt.yaml.",
)
@click.option(
    "--spec",
    metavar="FILE.py",
    shell_complete=completers.files,
    help="Read experiments from an mrunner-style Python file.",
)
@click.option(
    "--base_image",
    metavar="IMAGE",
    help="Docker image, as in mrunner. Not used yet: use --container for an image on the site.",
)
@click.option(
    "--style",
    metavar="STYLE",
    type=click.Choice(["options", "hydra"]),
    help="How the script gets parameters: options (--KEY VALUE) or hydra (KEY=VALUE); detected by default.",
)
@click.option("--shuffle", is_flag=True, help="Shuffle the sweep.")
@click.option("--seed", metavar="N", type=Number(), help="Random seed for --shuffle.")
@click.option("--limit", metavar="N", type=Number(1), help="Run only the first N parameter sets.")
@setting_options(settings.SWEEP, settings.FILES)
@click.option(
    "--largest-file",
    metavar="MB",
    type=Number(1),
    help="Maximum size of a single file in the snapshot, in MB (default: 50).",
)
@setting_options(settings.CODE, OUTPUT)
@click.option(
    "--stage",
    multiple=True,
    metavar="NAME=PLACE",
    help="Copy or unpack PLACE, such as project:cifar, to $YURT_STAGE/NAME on the disk of the node; repeatable.",
)
@click.option(
    "--stage-out",
    multiple=True,
    metavar="NAME[=PLACE]",
    help="Copy $YURT_STAGE/NAME back after the end, to the outputs of the run or to PLACE/RUN; repeatable.",
)
@click.option("--copy", is_flag=True, help="Copy the code into the run folder instead of linking it.")
@click.option("--hold", is_flag=True, help="Submit the job on hold; release it with `yurt release RUN`.")
@setting_options(settings.HOMES)
@click.option(
    "--after",
    multiple=True,
    metavar="RUN",
    shell_complete=run_names,
    help="Start after RUN has completed successfully; repeatable.",
)
@click.option(
    "--after-any",
    multiple=True,
    metavar="RUN",
    shell_complete=run_names,
    help="Start after RUN has finished in any state; repeatable.",
)
@setting_options(settings.RESTARTS)
@click.option(
    "--race",
    "race",
    multiple=True,
    metavar="CONTEXT,CONTEXT",
    help="Submit it to several contexts; it runs where it starts first. CONTEXT:partition=NAME changes a resource.",
)
@click.option(
    "--race-mode",
    type=click.Choice(["arbiter", "grant"]),
    help="How jobs of a race find out who was first: arbiter asks a cluster by ssh, grant waits for a yurt command.",
)
@click.option("--notify", is_flag=True, help="Show a desktop notification when the run has finished.")
@click.option(
    "--notify-with",
    metavar="COMMAND",
    help="Run COMMAND locally when the run has finished; YURT_RUN_ID and YURT_STATE are set.",
)
@click.option("--follow", "-f", is_flag=True, help="Follow the output until the run has finished.")
@click.option("--wait", is_flag=True, help="Wait until the run has finished.")
@click.option("--dry-run", is_flag=True, help="Show the plan without submitting; with -v, also the whole job script.")
def run(**options: Any) -> int:
    """Run a script or a command on a context.

    The run uses a snapshot of the code on disk. yurt's options come before the script; everything after the script is
    passed to it. A .py file is run with `python`. #SBATCH lines in the script are used; command-line options override
    them. With --spec, the script can be omitted if the spec file names one.

    With --context best, it runs where `yurt where` expects it to start first, of the contexts that the project lists
    as `contexts` in yurt.yaml, or of all clusters that were probed.

    With --quiet, prints only the run id, unless --follow is given.
    """
    from yurt.cli.send import after_sync, on_interrupt, submitted_line, wait_or_follow
    from yurt.verbs import run as verbs

    request = _request(options)
    after = {"after": options["after"], "after_any": options["after_any"]}
    where = {"context": app.current().context, **after}
    candidates = run_race.read(options, request)
    if not candidates and (app.current().context or os.environ.get("YURT_CONTEXT")) == "best":
        request, where["context"] = _best(request)
    if options["dry_run"]:
        with watching() as watch:
            plan = verbs.preview(request, **where, watch=watch)
        return render.result(plan, lambda: _print_plan(plan.data), requested=True)
    notify = options["notify_with"] or ("desktop" if options["notify"] else "")
    with on_interrupt(submitted_line) as sending, watching() as watch:
        how: dict[str, Any] = {"notify": notify, "on_kept": sending.on_kept, "on_held": sending.on_held, "watch": watch}
        if candidates:
            done = verbs.race(candidates, options["race_mode"], **after, **how)
        else:
            done = verbs.run(request, **where, **how)
    following = options["follow"] or _follows(done.data)
    staying = following or options["wait"]
    if staying and app.current().json:
        app.current().warnings += done.warnings
    else:
        only_id = app.current().quiet and not following
        line = done.data.run.id if only_id else after_sync(done.data) if sending.held else submitted_line(done.data)
        render.result(done, lambda: print(line), requested=only_id)
    return wait_or_follow([done.data], follow=following, kind="run") if staying else 0


def _best(request: Request) -> tuple[Request, str]:
    """Return the request for the context where it starts first, and that context, and say which it is."""
    from yurt.verbs import where

    now = app.current()
    if not where.is_best(now.context):
        return request, now.context
    with watching() as watch:
        found = where.best(request, watch=watch)
    if now.json:
        now.warnings.append(found.text)
    elif not now.quiet:
        print(render.escaped(found.text), file=sys.stderr, flush=True)
    return found.request, found.context


def _follows(entry: Entry) -> bool:
    """Return whether the context sets `cmd_type: srun`, which follows every run."""
    return any(each.key == "cmd_type" and each.value == "srun" for each in entry.run.settings)


def _request(options: dict[str, Any]) -> Request:
    from yurt.cli import run_mistakes
    from yurt.lifecycle.plan import options as run_options
    from yurt.lifecycle.plan import staging
    from yurt.lifecycle.plan.request import Request

    words, arguments = _split(options["words"])
    app.current().warnings += run_mistakes.check(words, options, click.get_current_context().command)
    if words and not options["spec"]:
        _check_spec(words[0])
    if options["base_image"]:
        image = options["base_image"]
        app.current().warnings.append(
            f"--base_image {image} is not used: yurt does not build images; use --container with an image on the site"
        )
    flags = run_options.flags({**options, **mappings(options)})
    largest = options["largest_file"]
    sets = _sets(options, arguments)
    if sets is not None and sets.variables:
        flags["variables"] = {**sets.variables, **flags["variables"]}
    given = {key: value for key, _, value in _pairs("param", options["params"], needs_value=True)}
    return Request(
        words=words or _script(options, sets),
        arguments=arguments,
        params=given if sets is None else {} if sets.sweep else sets.sets[0],
        typed=sets is not None,
        sets=list(sets.sets) if sets is not None and sets.sweep else (),
        style=options["style"] or "",
        spec=("mrunner" if sets.mrunner else "plain") if sets is not None and options["spec"] else "",
        parallel=options["max_parallel"],
        flags=flags,
        project=sets.project if sets is not None else "",
        name=options["name"] or (sets.name if sets is not None else ""),
        tags=options["tags"] if sets is None else sets.tags,
        note=options["note"] or (sets.note if sets is not None else ""),
        include=options["include"],
        exclude=[*options["exclude"], *(sets.exclude if sets is not None else ())],
        snapshot=not options["no_snapshot"],
        copy=options["copy"],
        restart_policy=run_options.restart_policy(options),
        hold=options["hold"],
        secrets=options["secrets"],
        stage=staging.from_options(options["stage"], options["stage_out"]),
        largest_file=None if largest is None else largest * MB,
    )


def _check_spec(script: str) -> None:
    """Raise UserError for a spec file of mrunner in place of a script: mrunner takes it there."""
    if not script.endswith(".py"):
        return
    from pathlib import Path

    from yurt.lifecycle.plan import mrunner_script

    file = Path(script)
    if file.is_file() and mrunner_script.is_spec(file):
        raise UserError(
            f"'{script}' is a spec file of mrunner, not a script; nothing was run",
            code="usage",
            hint=f"run its experiments with `yurt run --spec {script}`",
        )


def mappings(options: dict[str, Any]) -> dict[str, dict[str, str | None]]:
    """Return the options that are given as KEY=VALUE, as mappings."""
    rows = [row for row in settings.TABLE if row.option and row.form in ("mapping", "options")]
    return {
        row.option: {
            key: value if equals else None
            for key, equals, value in _pairs(row.flag[2:], options[row.option], needs_value=row.form == "mapping")
        }
        for row in rows
    }


def _script(options: dict[str, Any], sets: SweepPlan | None) -> Sequence[str]:
    """Return the command of the spec file. Raise UserError if there is none."""
    if sets is not None and sets.script:
        return sets.script
    if options["spec"]:
        file = options["spec"]
        hint = f"add the script: `yurt run --spec {file} train.py`"
        raise UserError(f"no script given, and {file} does not name one", code="usage", hint=hint)
    raise UserError("no script or command given", code="usage", hint="for example: `yurt run train.py -- --lr 0.1`")


def _sets(options: dict[str, Any], arguments: Sequence[str]) -> SweepPlan | None:
    """Return the sets of parameters of a sweep; None if it is one run."""
    if not any(options[each] for each in ("grid", "zipped", "config", "spec")):
        for each in ("shuffle", "seed", "limit"):
            if options[each] not in (None, False):
                name = each.replace("_", "-")
                raise UserError(
                    f"--{name} needs a sweep (--grid, --zip, --config or --spec)",
                    code="usage",
                    hint="for example: `--grid lr=0.1,0.01`",
                )
        return None
    from pathlib import Path

    from yurt.lifecycle.plan import sweep

    found = _read(
        sweep.Flags(
            grid=options["grid"],
            zip=options["zipped"],
            param=options["params"],
            config=Path(options["config"]) if options["config"] else None,
            spec=Path(options["spec"]) if options["spec"] else None,
            shuffle=options["shuffle"],
            seed=options["seed"],
            limit=options["limit"],
            arguments=arguments,
            name=options["name"],
            tags=options["tags"],
            note=options["note"],
        )
    )
    app.current().warnings += found.warnings
    if found.seed is not None and options["seed"] is None:
        app.current().warnings.append(f"the sweep is shuffled; use --seed {found.seed} to repeat this order")
    return found


def _read(flags: Flags) -> SweepPlan:
    """Return the sweep of files and flags; with -v, print the traceback of an error in the spec file."""
    from yurt.config.spec import SpecError
    from yurt.lifecycle.plan import sweep

    try:
        return sweep.read(flags)
    except SpecError as error:
        now = app.current()
        if error.traceback and now.verbose and not now.json:
            print(error.traceback, end="", file=sys.stderr)
        elif error.traceback and not error.hint:
            error.hint = f"see the traceback with `yurt -v run --spec {flags.spec} …`"
        raise


def _split(words: tuple[str, ...]) -> tuple[list[str], list[str]]:
    """Return the command, and the arguments after the first `--`."""
    given = list(words)
    if given and given[0].startswith("-"):  # click dropped the `--`, which came before any command
        return [], given
    if "--" not in given:
        return given, []
    at = given.index("--")
    return given[:at], given[at + 1 :]


def _pairs(option: str, texts: tuple[str, ...], *, needs_value: bool = False) -> list[tuple[str, str, str]]:
    found = [text.partition("=") for text in texts]
    for text, (key, equals, _value) in zip(texts, found, strict=True):
        if not key or (needs_value and not equals):
            raise UserError(f"--{option}: '{text}' is not KEY=VALUE", code="usage", hint=f"use `--{option} KEY=VALUE`")
    return found


def _print_plan(view: PlanView) -> None:
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
    print(f"# {render.plain(view.submitted_as)}")
    script, data = view.script, view.data
    if not app.current().verbose:
        script, data = _own_lines(script), _own_data(data)
    parts = f"\n# --- job.sh\n\n{script}\n# --- data\n\n{data}\n"
    render.verbatim(parts.encode(errors="backslashreplace"))
    if not app.current().verbose:
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
