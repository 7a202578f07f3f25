"""The table of verbs, and click's command for `yurt` itself."""

from __future__ import annotations

import click

from yurt import __version__
from yurt.cli.app import Group

VERBS = {
    "run": ("yurt.cli.run:run", "Run a script or a command on a context."),
    "ps": ("yurt.cli.ps:ps", "List runs, newest first."),
    "show": ("yurt.cli.show:show", "Show a run in detail."),
    "why": ("yurt.cli.why:why", "Explain why a run is pending or failed, and what to do."),
    "logs": ("yurt.cli.logs:logs", "Show the output of runs."),
    "metrics": ("yurt.cli.metrics:metrics", "Show the metrics of runs, also while they run."),
    "tensorboard": ("yurt.cli.tensorboard:tensorboard", "Show the curves of runs in TensorBoard."),
    "wait": ("yurt.cli.wait:wait", "Wait until runs have finished."),
    "cancel": ("yurt.cli.cancel:cancel", "Cancel runs."),
    "hold": ("yurt.cli.hold:hold", "Keep queued runs from starting."),
    "release": ("yurt.cli.hold:release", "Let held runs start."),
    "shell": ("yurt.cli.shell:shell", "Open a shell on a node, or inside a run."),
    "forward": ("yurt.cli.forward:forward", "Reach a program that listens on the node of a run."),
    "serve": ("yurt.cli.serve:serve", "Run Jupyter or anything that listens in a job."),
    "dev": ("yurt.cli.dev:dev", "Work on a node of your own, with a workspace that is backed up."),
    "home": ("yurt.cli.home:home", "Keep your homes on several sites in sync."),
    "retry": ("yurt.cli.retry:retry", "Run finished runs again."),
    "fetch": ("yurt.cli.fetch:fetch", "Download the results of runs."),
    "wandb": ("yurt.cli.wandb:wandb", "Upload runs of W&B that were logged without internet."),
    "mlflow": ("yurt.cli.mlflow:mlflow", "Show runs in MLflow, or send them to your MLflow server."),
    "cluster": ("yurt.cli.cluster:cluster", "Show what is free on sites, the queue and maintenance, now."),
    "where": ("yurt.cli.where:where", "Show where a run would start first."),
    "storage": ("yurt.cli.storage:storage", "Show storage tiers, and keep what would expire."),
    "data": ("yurt.cli.data:data", "Copy files to and from contexts, list and remove them."),
    "prune": ("yurt.cli.prune:prune", "Remove finished runs and unused environments from their sites."),
    "diff": ("yurt.cli.diff:diff", "Show the differences between two runs."),
    "import": ("yurt.cli.import_:import_", "Import the runs on a context into the local index."),
    "env": ("yurt.cli.env:env", "Build and inspect environments on clusters."),
    "trust": ("yurt.cli.trust:trust", "Agree to what a project wants of this machine."),
    "context": ("yurt.cli.context:context", "Manage contexts."),
    "login": ("yurt.cli.login:login", "Log in to sites and keep the connections open."),
    "doctor": ("yurt.cli.doctor:doctor", "Check this machine and your contexts for problems."),
    "secret": ("yurt.cli.secret:secret", "Manage secrets in the system keyring."),
    "agent": ("yurt.cli.agent:agent", "Submit saved runs and refresh states."),
    "race": ("yurt.cli.race:race", "Release a race whose winner cannot be reached."),
    "lab": ("yurt.cli.lab:lab", "Manage two real Slurm clusters on this machine."),
    "completion": ("yurt.cli.completion:completion", "Print a completion script for a shell."),
}


@click.group(
    cls=Group,
    lazy=VERBS,
    examples=["yurt run train.py -- --lr 0.1", "yurt ps", "yurt lab up"],
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__, message="yurt %(version)s")
def root() -> None:
    """Run research projects on Slurm clusters and fetch the results."""
