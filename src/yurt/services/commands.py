"""`yurt serve …`: services in jobs. Each command has a module of its own, imported when it is called."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from yurt.cli.app import Group

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

COMMANDS: dict[str, tuple[str, str]] = {
    "jupyter": ("yurt.services.serve:jupyter_command", "Run JupyterLab in a job, and open it here."),
    "tensorboard": ("yurt.services.serve:tensorboard_command", "Run TensorBoard in a job, where the event files are."),
    "mlflow": ("yurt.services.serve:mlflow_command", "Run MLflow in a job, where its store is."),
    "run": ("yurt.services.serve:run_command", "Run any program that listens in a job, and open it here."),
    "list": ("yurt.services.list_services:list_command", "List services."),
    "open": ("yurt.services.open_service:open_command", "Open a service that is running."),
    "stop": ("yurt.services.stop_service:stop_command", "End services."),
}

EXAMPLES = [
    "yurt serve jupyter --gpus 1 --time 4h",
    "yurt serve --context alpha -- python app.py --port {port}",
    "yurt serve list",
    "yurt serve open jupyter",
    "yurt serve stop jupyter",
]


class Serve(Group):
    """The group `serve`: other words than its commands are a command to run, or a service of yurt.yaml."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and args[0] not in (*COMMANDS, "--help", "-h"):
            args = ["run", *args]
        return super().parse_args(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete a command, or a service of yurt.yaml."""
        from click.shell_completion import CompletionItem

        from yurt.services.serve import service_names

        found = super().shell_complete(ctx, incomplete)
        return [*found, *map(CompletionItem, service_names(ctx, click.Argument(["name"]), incomplete))]


@click.group(cls=Serve, lazy=COMMANDS, examples=EXAMPLES, subcommand_metavar="COMMAND [ARGS]...")
def serve() -> None:
    """Run Jupyter or anything that listens in a job.

    Submits a job, waits until its program listens, and connects this machine to it through the site's login node. Only
    you can reach it, also on a node that you share with others. Ctrl-C asks whether the job stays; `yurt serve open`
    returns to it.

    Short for `yurt serve run -- PROGRAM`, which runs any program: `yurt serve -- PROGRAM`.
    """
