"""`yurt completion SHELL`: the script that makes a shell complete yurt's commands."""

from __future__ import annotations

import click

from yurt.cli import render
from yurt.cli.app import verb

SHELLS = ("bash", "zsh", "fish")


@verb(
    examples=[
        'eval "$(yurt completion bash)"',
        "yurt completion zsh > ~/.zfunc/_yurt",
        "yurt completion fish > ~/.config/fish/completions/yurt.fish",
    ]
)
@click.argument("shell", metavar="SHELL", type=click.Choice(SHELLS))
def completion(shell: str) -> None:
    """Print the script that lets SHELL complete yurt's commands."""
    from click.shell_completion import get_completion_class

    from yurt.cli.main import root

    found = get_completion_class(shell)
    assert found is not None
    script = found(root, {}, "yurt", "_YURT_COMPLETE").source()
    render.show("completion", {"shell": shell, "script": script}, lambda: print(script), asked=True)
