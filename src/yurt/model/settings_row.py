"""What a row of the table of settings says; the table is in yurt.model.settings. Pure, and cheap to import."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    Form = Literal[
        "text",
        "choice",  # one of some words
        "flag",
        "number",  # a whole number that no scheduler sees
        "count",  # a whole number above zero
        "range",  # 2 or 2-4, as sbatch reads it
        "size",  # of memory
        "time",
        "seconds",  # a time in which seconds count
        "gpus",  # 2, a100 or a100:2
        "list",
        "mapping",  # every name has a value
        "options",  # a mapping where null stands for no value
        "group",  # of settings that have rows of their own
    ]


class Row:
    """One setting, never changed. A row has an option, a key of a context, or both."""

    def __init__(  # no NamedTuple: making one costs a hundredth of start-up
        self,
        *,
        option: str = "",
        cli: str = "",
        key: str = "",
        form: Form = "text",
        unit: str = "",
        resource: str = "",
        sbatch: str = "",
        scheduler: bool = False,
        site: bool = False,
        least: int = 1,
        choices: tuple[str, ...] = (),
        aliases: tuple[str, ...] = (),
        example: str = "",
        help: str = "",
        about: str = "",
    ) -> None:
        self.option = option
        """The keyword of `yurt.run`."""
        self.cli = cli
        """The flags of `yurt run`, the main one first, and the word that stands for the value."""
        self.key = key
        """The key of a context; a part of `resources` is written resources.cpu."""
        self.form = form
        self.unit = unit
        """What a bare number counts."""
        self.resource = resource
        """The field of Resources."""
        self.sbatch = sbatch
        """The option of sbatch. Without a `resource`, the value joins the key sbatch_options unchanged."""
        self.scheduler = scheduler
        """Whether it means nothing without a scheduler."""
        self.site = site
        """Whether it describes the site, so that a project cannot set it."""
        self.least = least
        """The smallest value of a number."""
        self.choices = choices
        self.aliases = aliases
        """Other names of the key: those mrunner's documentation and code used."""
        self.example = example
        """A right value of the key, as YAML."""
        self.help = help
        """A line for `yurt run --help`."""
        self.about = about
        """A line for the reference of context keys."""

    @property
    def flag(self) -> str:
        """The main flag, such as --exclude-node; empty if there is none."""
        return self.cli.partition(" ")[0]
