"""`yurt run [OPTIONS] [SCRIPT|COMMAND]... [-- PARAMS...]`: submit a run or a sweep."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

from yurt.cli import call, completers, render
from yurt.cli.completers import run_names
from yurt.cli.declare import argument, option, verb
from yurt.cli.progress import watching
from yurt.cli.settings import options as setting_options
from yurt.cli.values import Choice, Number
from yurt.model import settings
from yurt.model.settings_storage import OUTPUT

if TYPE_CHECKING:
    from yurt.lifecycle.plan.request import Request
    from yurt.store import Entry

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


@verb(examples=EXAMPLES, command_class="yurt.lifecycle.run_click:Run", interspersed=False)
@argument(
    "words",
    nargs=-1,
    metavar="[SCRIPT|COMMAND]... [-- PARAMS...]",
    shell_complete=completers.files,
)
@setting_options(settings.LABELS, settings.RESOURCES, settings.ENVIRONMENT)
@option(
    "--param",
    "params",
    multiple=True,
    metavar="KEY=VALUE",
    help="Pass --KEY VALUE to the script, or KEY=VALUE with Hydra; repeatable.",
)
@option(
    "--grid",
    multiple=True,
    metavar="KEY=V1,V2",
    help="Sweep over all combinations of values; a value can be a range (1..3) or a file (@FILE).",
)
@option(
    "--zip",
    "zipped",
    multiple=True,
    metavar="KEY=V1,V2",
    help="Sweep over values in lockstep: the first of each key, then the second, and so on.",
)
@option(
    "--config",
    "config",
    metavar="FILE",
    shell_complete=completers.files,
    help="Read parameters from FILE, such as neptune.yaml or yurt.yaml.",
)
@option(
    "--spec",
    metavar="FILE.py",
    shell_complete=completers.files,
    help="Read experiments from an mrunner-style Python file.",
)
@option(
    "--base_image",
    metavar="IMAGE",
    help="Docker image, as in mrunner. Not used yet: use --container for an image on the site.",
)
@option(
    "--style",
    metavar="STYLE",
    type=Choice(["options", "hydra"]),
    help="How the script gets parameters: options (--KEY VALUE) or hydra (KEY=VALUE); detected by default.",
)
@option("--shuffle", is_flag=True, help="Shuffle the sweep.")
@option("--seed", metavar="N", type=Number(), help="Random seed for --shuffle.")
@option("--limit", metavar="N", type=Number(1), help="Run only the first N parameter sets.")
@setting_options(settings.SWEEP, settings.FILES)
@option(
    "--largest-file",
    metavar="MB",
    type=Number(1),
    help="Maximum size of a single file in the snapshot, in MB (default: 50).",
)
@setting_options(settings.CODE, OUTPUT)
@option(
    "--stage",
    multiple=True,
    metavar="NAME=PLACE",
    help="Copy or unpack PLACE, such as project:cifar, to $YURT_STAGE/NAME on the disk of the node; repeatable.",
)
@option(
    "--stage-out",
    multiple=True,
    metavar="NAME[=PLACE]",
    help="Copy $YURT_STAGE/NAME back after the end, to the outputs of the run or to PLACE/RUN; repeatable.",
)
@option("--copy", is_flag=True, help="Copy the code into the run folder instead of linking it.")
@option("--hold", is_flag=True, help="Submit the job on hold; release it with `yurt release RUN`.")
@setting_options(settings.HOMES)
@option(
    "--after",
    multiple=True,
    metavar="RUN",
    shell_complete=run_names,
    help="Start after RUN has completed successfully; repeatable.",
)
@option(
    "--after-any",
    multiple=True,
    metavar="RUN",
    shell_complete=run_names,
    help="Start after RUN has finished in any state; repeatable.",
)
@setting_options(settings.RESTARTS)
@option(
    "--race",
    "race",
    multiple=True,
    metavar="CONTEXT,CONTEXT",
    help="Submit it to several contexts; it runs where it starts first. CONTEXT:partition=NAME changes a resource.",
)
@option(
    "--race-mode",
    type=Choice(["arbiter", "grant"]),
    help="How jobs of a race find out who was first: arbiter asks a cluster by ssh, grant waits for a yurt command.",
)
@option("--notify", is_flag=True, help="Show a desktop notification when the run has finished.")
@option(
    "--notify-with",
    metavar="COMMAND",
    help="Run COMMAND locally when the run has finished; YURT_RUN_ID and YURT_STATE are set.",
)
@option("--follow", "-f", is_flag=True, help="Follow the output until the run has finished.")
@option("--wait", is_flag=True, help="Wait until the run has finished.")
@option("--dry-run", is_flag=True, help="Show the plan without submitting; with -v, also the whole job script.")
def run(**options: Any) -> int:
    """Run a script or a command on a context.

    The run uses a snapshot of the code on disk. yurt's options come before the script; everything after the script is
    passed to it. A .py file is run with `python`. #SBATCH lines in the script are used; command-line options override
    them. With --spec, the script can be omitted if the spec file names one.

    With --context best, it runs where `yurt where` expects it to start first, of the contexts that the project lists
    as `contexts` in yurt.yaml, or of all clusters that were probed.

    With --quiet, prints only the run id, unless --follow is given.
    """
    from yurt.lifecycle import run as verbs
    from yurt.lifecycle import run_request
    from yurt.lifecycle.submitted_text import after_sync, on_interrupt, submitted_line, wait_or_follow

    request = run_request.request(options, run.parameters)
    after = {"after": options["after"], "after_any": options["after_any"]}
    where = {"context": call.current().context, **after}
    candidates = run_request.candidates(options, request)
    if not candidates and (call.current().context or os.environ.get("YURT_CONTEXT")) == "best":
        request, where["context"] = _best(request)
    if options["dry_run"]:
        from yurt.lifecycle.run_plan_text import print_plan

        with watching() as watch:
            plan = verbs.preview(request, **where, watch=watch)
        return render.result(plan, lambda: print_plan(plan.data), requested=True)
    notify = options["notify_with"] or ("desktop" if options["notify"] else "")
    with on_interrupt(submitted_line) as sending, watching() as watch:
        how: dict[str, Any] = {"notify": notify, "on_kept": sending.on_kept, "on_held": sending.on_held, "watch": watch}
        if candidates:
            done = verbs.race(candidates, options["race_mode"], **after, **how)
        else:
            done = verbs.run(request, **where, **how)
    following = options["follow"] or _follows(done.data)
    staying = following or options["wait"]
    if staying and call.current().json:
        call.current().warnings += done.warnings
    else:
        only_id = call.current().quiet and not following
        line = done.data.run.id if only_id else after_sync(done.data) if sending.held else submitted_line(done.data)
        render.result(done, lambda: print(line), requested=only_id)
    return wait_or_follow([done.data], follow=following, kind="run") if staying else 0


def _best(request: Request) -> tuple[Request, str]:
    """Return the request for the context where it starts first, and that context, and say which it is."""
    from yurt.where import where

    now = call.current()
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
