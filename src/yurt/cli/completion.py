"""`yurt completion SHELL`: print a completion script."""

from __future__ import annotations

import click

from yurt.cli import render
from yurt.cli.app import verb

SHELLS = ("bash", "zsh", "fish")


@verb(
    examples=[
        "yurt completion bash > ~/.local/share/bash-completion/completions/yurt",
        "yurt completion zsh > ~/.zfunc/_yurt",
        "yurt completion fish > ~/.config/fish/completions/yurt.fish",
    ],
    context_help="",
)
@click.argument("shell", metavar="SHELL", type=click.Choice(SHELLS))
def completion(shell: str) -> None:
    """Print a completion script for a shell.

    SHELL is bash, zsh or fish. In bash without the bash-completion package, enable completion with the line
    `eval "$(yurt completion bash)"` in ~/.bashrc.
    """
    from click.shell_completion import get_completion_class

    from yurt.cli.root import root

    found = get_completion_class(shell)
    assert found is not None
    script = found(root, {}, "yurt", "_YURT_COMPLETE").source()
    render.show("completion", {"shell": shell, "script": script}, lambda: print(script), requested=True)
