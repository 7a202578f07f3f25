"""What a row of the table of settings says; the table is in yurt.model.settings. Pure, and cheap to import."""

from __future__ import annotations

from typing import Literal, NamedTuple

Form = Literal[
    "text",
    "choice",  # one of some words
    "flag",
    "number",  # a whole number that no scheduler sees
    "count",  # a whole number above zero
    "range",  # 2 or 2-4, as sbatch reads it
    "size",  # of memory
    "time",
    "seconds",  # a time shorter than a minute counts
    "gpus",  # 2, a100 or a100:2
    "list",
    "mapping",  # every name has a value
    "options",  # a mapping where null stands for no value
    "group",  # of settings that have rows of their own
]


class Row(NamedTuple):
    """One setting. A row has an option, a key of a context, or both."""

    option: str = ""
    """The keyword of `yurt.run`."""
    cli: str = ""
    """The flags of `yurt run`, the main one first, and the word that stands for the value."""
    key: str = ""
    """The key of a context; a part of `resources` is written resources.cpu."""
    form: Form = "text"
    unit: str = ""
    """What a bare number counts."""
    resource: str = ""
    """The field of Resources."""
    sbatch: str = ""
    """The option of sbatch. Without a `resource`, the value joins the key sbatch_options unchanged."""
    scheduler: bool = False
    """Whether it means nothing without a scheduler."""
    site: bool = False
    """Whether it describes the site, so that a project cannot set it."""
    least: int = 1
    """The smallest value of a number."""
    choices: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    """Other names of the key: those mrunner's documentation and code used."""
    example: str = ""
    """A right value of the key, as YAML."""
    help: str = ""
    """A line for `yurt run --help`."""
    about: str = ""
    """A line for the reference of context keys."""

    @property
    def flag(self) -> str:
        """The main flag, such as --exclude-node; empty if there is none."""
        return self.cli.partition(" ")[0]
