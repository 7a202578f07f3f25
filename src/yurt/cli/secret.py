"""`yurt secret`: values that only runs get to see, kept in the system's keyring."""

from __future__ import annotations

import sys

import click

from yurt.cli import render
from yurt.cli.app import Group, verb


@click.group(cls=Group, examples=["yurt secret set HF_TOKEN", "yurt run --secret HF_TOKEN train.py"])
def secret() -> None:
    """Values for --secret of `yurt run`, kept in the system's keyring.

    A variable of the same name in the environment goes before the keyring.
    """


@verb(secret, examples=["yurt secret set HF_TOKEN", "yurt secret set HF_TOKEN < token.txt"], name="set")
@click.argument("name", metavar="NAME")
def set_(name: str) -> None:
    """Keep a value, typed unseen or read from standard input.

    On a terminal it is asked for, without showing it. Else all of standard input is the value, but for
    one newline at its end.
    """
    from yurt.verbs import secret as verbs

    verbs.check_ready(name)
    done = verbs.keep(name, _value(name))
    render.result(done, lambda: print(f"{name} is in the keyring" + _shadowed(done.data.environment)))


@verb(secret, examples=["yurt secret list", "yurt secret list --json"], name="list")
def list_() -> None:
    """The names of the secrets in the keyring; never their values."""
    from yurt.verbs import secret as verbs

    found = verbs.kept()

    def for_people() -> None:
        for each in found.data:
            print(each.name + _shadowed(each.environment))

    render.result(found, for_people, asked=True)


@verb(secret, examples=["yurt secret remove HF_TOKEN"])
@click.argument("name", metavar="NAME")
def remove(name: str) -> None:
    """Take a secret out of the keyring."""
    from yurt.verbs import secret as verbs

    render.result(verbs.forget(name), lambda: print(f"{name} is no longer in the keyring"))


def _shadowed(environment: bool) -> str:
    return "; here the variable of that name goes before it" if environment else ""


def _value(name: str) -> bytes:
    if sys.stdin.isatty():
        import getpass

        return getpass.getpass(f"value of {name}: ").encode(errors="surrogateescape")
    return sys.stdin.buffer.read().removesuffix(b"\n")
