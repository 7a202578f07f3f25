"""`yurt secret`: values for `yurt run --secret`, stored in the system keyring."""

from __future__ import annotations

import sys

import click

from yurt.cli import render
from yurt.cli.app import Group, verb


@click.group(cls=Group, examples=["yurt secret set HF_TOKEN", "yurt run --secret HF_TOKEN train.py"], context_help="")
def secret() -> None:
    """Manage secrets in the system keyring.

    `yurt run --secret NAME` passes a secret to a run. An environment variable with the same name takes precedence
    over the keyring.
    """


@verb(
    secret, examples=["yurt secret set HF_TOKEN", "yurt secret set HF_TOKEN < token.txt"], name="set", context_help=""
)
@click.argument("name", metavar="NAME")
def set_(name: str) -> None:
    """Store a secret in the keyring.

    On a terminal, prompts for the value without echoing it. Otherwise, reads the value from standard input and strips
    one trailing newline.
    """
    from yurt.contexts import secret as verbs

    verbs.check_ready(name)
    done = verbs.keep(name, _value(name))
    render.result(done, lambda: print(f"{name} stored in the keyring" + _shadowed(done.data.environment)))


@verb(secret, examples=["yurt secret list", "yurt secret list --json"], name="list", context_help="")
def list_() -> None:
    """List the names of the secrets in the keyring.

    Values are never shown.
    """
    from yurt.contexts import secret as verbs

    found = verbs.kept()

    def print_text() -> None:
        for each in found.data:
            print(each.name + _shadowed(each.environment))

    render.result(found, print_text, requested=True)


@verb(secret, examples=["yurt secret remove HF_TOKEN"], context_help="")
@click.argument("name", metavar="NAME")
def remove(name: str) -> None:
    """Remove a secret from the keyring."""
    from yurt.contexts import secret as verbs

    render.result(verbs.forget(name), lambda: print(f"{name} removed from the keyring"))


def _shadowed(environment: bool) -> str:
    return "; the environment variable with this name takes precedence" if environment else ""


def _value(name: str) -> bytes:
    if sys.stdin.isatty():
        import getpass

        return getpass.getpass(f"value for {name}: ").encode(errors="surrogateescape")
    return sys.stdin.buffer.read().removesuffix(b"\n")
