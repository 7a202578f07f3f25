"""The row type of the settings table in yurt.model.settings. Pure, and cheap to import."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    Form = Literal[
        "text",
        "choice",  # one of several words
        "flag",
        "number",  # an integer that is not passed to the scheduler
        "count",  # a positive integer
        "range",  # 2 or 2-4, as in sbatch
        "size",  # of memory
        "time",
        "seconds",  # a duration with a resolution of seconds
        "wait",  # the same, or 0
        "gpus",  # 2, a100 or a100:2
        "gres",  # generic resources: gpu:a100:2,lustre:1
        "list",
        "mapping",  # every name has a value
        "options",  # a mapping where null means no value
        "group",  # of settings that have their own rows
    ]


class Row:
    """One setting; immutable by convention. A row has an option, a context key, or both."""

    def __init__(  # not a NamedTuple: creating one takes one percent of the start-up time
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
        effect: str = "",
    ) -> None:
        self.option = option
        """The keyword argument of `yurt.run`."""
        self.cli = cli
        """The flags of `yurt run`, the main one first, and the metavar of the value."""
        self.key = key
        """The context key; a part of `resources` is written resources.cpu."""
        self.form = form
        self.unit = unit
        """The unit of a bare number."""
        self.resource = resource
        """The field of Resources."""
        self.sbatch = sbatch
        """The sbatch option. Without a `resource`, the value is added to sbatch_options unchanged."""
        self.scheduler = scheduler
        """Whether it has no effect without a scheduler."""
        self.site = site
        """Whether it describes the site, so a project cannot set it."""
        self.least = least
        """The smallest value of a number."""
        self.choices = choices
        self.aliases = aliases
        """Other names of the key, from mrunner's documentation and code."""
        self.example = example
        """A valid value of the key, as YAML."""
        self.help = help
        """The help text of the option."""
        self.about = about
        """The text in the reference of context keys."""
        self.effect = effect
        """What the value runs or sends; empty if it only names or limits what a run requests."""

    @property
    def flag(self) -> str:
        """The main flag, such as --exclude-node; empty if there is none."""
        return self.cli.partition(" ")[0].partition("/")[0]
