"""Questions to the user, on standard error: standard output is the result. click is imported when one is asked."""

from __future__ import annotations

from collections.abc import Sequence


def confirm(question: str, *, default: bool = False) -> bool:
    """Ask for yes or no; Enter alone means `default`."""
    import click

    return click.confirm(question, default=default, err=True)


def choose(question: str, answers: Sequence[str], *, default: str | None = None, show: bool = True) -> str:
    """Ask for one of several answers."""
    import click

    answer: str = click.prompt(question, type=click.Choice(list(answers)), default=default, show_choices=show, err=True)
    return answer
