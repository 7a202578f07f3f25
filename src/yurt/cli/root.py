"""The table of verbs, and click's command for `yurt` itself."""

from __future__ import annotations

import click

from yurt import __version__
from yurt.cli.app import Group

VERBS = {
    "run": ("yurt.lifecycle.run:run_command", "Run a script or a command on a context."),
    "ps": ("yurt.lifecycle.ps:ps_command", "List runs, newest first."),
    "show": ("yurt.lifecycle.show:show_command", "Show a run in detail."),
    "why": ("yurt.lifecycle.why:why_command", "Explain why a run is pending or failed, and what to do."),
    "logs": ("yurt.lifecycle.logs:logs_command", "Show the output of runs."),
    "metrics": ("yurt.tracking.metrics:metrics_command", "Show the metrics of runs, also while they run."),
    "tensorboard": (
        "yurt.tracking.tensorboard.tensorboard:tensorboard_command",
        "Show the curves of runs in TensorBoard.",
    ),
    "wait": ("yurt.lifecycle.wait:wait_command", "Wait until runs have finished."),
    "cancel": ("yurt.lifecycle.cancel:cancel_command", "Cancel runs."),
    "hold": ("yurt.lifecycle.hold:hold_command", "Keep queued runs from starting."),
    "release": ("yurt.lifecycle.hold:release_command", "Let held runs start."),
    "shell": ("yurt.lifecycle.shell:shell_command", "Open a shell on a node, or inside a run."),
    "forward": ("yurt.services.forward:forward_command", "Reach a program that listens on the node of a run."),
    "serve": ("yurt.services.commands:serve", "Run Jupyter or anything that listens in a job."),
    "dev": ("yurt.dev.commands:dev", "Work on a node of your own, with a workspace that is backed up."),
    "home": ("yurt.homes.commands:home", "Keep your homes on several sites in sync."),
    "retry": ("yurt.lifecycle.retry:retry_command", "Run finished runs again."),
    "fetch": ("yurt.lifecycle.fetch:fetch_command", "Download the results of runs."),
    "wandb": ("yurt.tracking.wandb_command:wandb", "Upload runs of W&B that were logged without internet."),
    "mlflow": (
        "yurt.tracking.mlflow.mlflow_command:mlflow",
        "Show runs in MLflow, or send them to your MLflow server.",
    ),
    "cluster": ("yurt.contexts.cluster:cluster_command", "Show what is free on sites, the queue and maintenance, now."),
    "where": ("yurt.where.where:where_command", "Show where a run would start first."),
    "storage": ("yurt.storage.commands:storage", "Show storage tiers, and keep what would expire."),
    "data": ("yurt.storage.data_commands:data", "Copy files to and from contexts, list and remove them."),
    "prune": ("yurt.lifecycle.prune:prune_command", "Remove finished runs and unused environments from their sites."),
    "diff": ("yurt.lifecycle.diff:diff_command", "Show the differences between two runs."),
    "import": ("yurt.lifecycle.import_:import_command", "Import the runs on a context into the local index."),
    "env": ("yurt.envs.commands:env", "Build and inspect environments on clusters."),
    "trust": ("yurt.lifecycle.trust:trust_command", "Agree to what a project wants of this machine."),
    "context": ("yurt.contexts.commands:context", "Manage contexts."),
    "login": ("yurt.contexts.login:login_command", "Log in to sites and keep the connections open."),
    "doctor": ("yurt.contexts.doctor.doctor:doctor_command", "Check this machine and your contexts for problems."),
    "secret": ("yurt.contexts.secret_command:secret", "Manage secrets in the system keyring."),
    "agent": ("yurt.agent.commands:agent", "Submit saved runs and refresh states."),
    "race": ("yurt.lifecycle.race_command:race", "Release a race whose winner cannot be reached."),
    "lab": ("yurt.lab.commands:lab", "Manage two real Slurm clusters on this machine."),
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
