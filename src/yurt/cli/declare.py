"""Declares the options and arguments of a verb without click.

The frequent verbs are declared here, because importing click costs as much as listing runs. Both parsers are built
from the same declaration: click's command, which knows every form and prints help and errors, and `yurt.cli.quick`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from yurt.cli import completers

if TYPE_CHECKING:
    import click

_Decorated = TypeVar("_Decorated", bound=Callable[..., Any])

CONTEXT_HELP = "Use this context instead of the current one."
ONLY_CONTEXT = "Only runs on this context."


NOT_EMPTY = ("context", "name", "time", "mem", "nodes", "cpus", "gpus", "partition", "tags")
"""Options whose value cannot be empty. An empty value of others, such as --container, overrides a setting."""


class Parameter:
    """An option or an argument. `more` are the keywords of click.Option or click.Argument."""

    def __init__(self, words: Sequence[str], more: dict[str, Any], *, is_option: bool) -> None:
        self.words = words
        self.more = more
        self.is_option = is_option
        self.is_flag = bool(more.get("is_flag") or any("/" in word for word in words))
        self.opts = [word.partition("/")[0] for word in words if word.startswith("-")]
        """Its flags, without the second part of `--sync/--no-sync`."""
        long = [word for word in self.opts if word.startswith("--")] or self.opts
        names = [word for word in words if not word.startswith("-")] or [long[0].lstrip("-")]
        self.name = names[0].replace("-", "_").lower()

    @property
    def flag(self) -> str:
        """The first long flag of an option."""
        return next((flag for flag in self.opts if flag.startswith("--")), self.opts[0])

    def for_click(self, **more: Any) -> click.Parameter:
        """Return click's parameter, with more keywords."""
        import click

        more = {**self.more, **more}
        if "type" in more:
            from yurt.cli.option_types import for_click

            more["type"] = for_click(more["type"])
        return (click.Option if self.is_option else click.Argument)(self.words, **more)


def option(*words: str, **more: Any) -> Callable[[_Decorated], _Decorated]:
    """Return a decorator that adds an option, as click.option does."""
    return _adding(Parameter(words, more, is_option=True))


def argument(name: str, **more: Any) -> Callable[[_Decorated], _Decorated]:
    """Return a decorator that adds an argument, as click.argument does."""
    return _adding(Parameter([name], more, is_option=False))


def _adding(parameter: Parameter) -> Callable[[_Decorated], _Decorated]:
    def decorate(function: _Decorated) -> _Decorated:
        # In click's own list, so that the decorators of both kinds can be mixed.
        function.__dict__.setdefault("__click_params__", []).append(parameter)
        return function

    return decorate


def global_options(context_help: str = CONTEXT_HELP) -> list[Parameter]:
    """Return the options that are accepted both before and after the verb.

    Without `context_help`, the help does not list --context: the command ignores it.
    """
    context = {
        "metavar": "NAME",
        "shell_complete": completers.context_names,
        "help": context_help or CONTEXT_HELP,
        "hidden": not context_help,
    }
    plain = "Print words instead of bars, colours and columns, for screen readers; also YURT_PLAIN=1."
    return [
        Parameter(["--context"], context, is_option=True),
        Parameter(["--json"], {"is_flag": True, "help": "Print JSON instead of text."}, is_option=True),
        Parameter(["--plain"], {"is_flag": True, "envvar": "YURT_PLAIN", "help": plain}, is_option=True),
        Parameter(["-q", "--quiet"], {"is_flag": True, "help": "Print no status messages."}, is_option=True),
        Parameter(["-v", "--verbose"], {"count": True, "help": "Print more detail."}, is_option=True),
    ]


WITH_DASHES = "yurt.cli.dashes:WithDashes"
"""The command class of a verb whose words may end with `--` and a command."""


class DeclaredVerb:
    """A verb: its function, its parameters, and what click needs for its help."""

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        examples: Sequence[str],
        context_help: str = CONTEXT_HELP,
        command_class: str = "yurt.cli.app:Verb",
        interspersed: bool = True,
        name: str = "",
        **more: Any,
    ) -> None:
        self.function = function
        self.name = name or function.__name__.removesuffix("_command").rstrip("_").replace("_", "-")
        self.more = more
        """Other keywords of click.command."""
        self.own: list[Parameter] = function.__dict__.pop("__click_params__", [])[::-1]
        self.shared = global_options(context_help)
        self.examples = examples
        self.context_help = context_help
        self.command_class = command_class
        self.interspersed = interspersed
        """Whether options may follow arguments."""
        self._command: click.Command | None = None

    @property
    def selects_runs(self) -> bool:
        return self.context_help == ONLY_CONTEXT

    @property
    def parameters(self) -> list[Parameter]:
        """All of its options and arguments, in the order of the help."""
        return [*self.own, *self.shared]

    @property
    def command(self) -> click.Command:
        """Click's command for the verb."""
        if self._command is None:
            from importlib import import_module

            import click

            module, _, name = self.command_class.partition(":")
            make: Callable[[Callable[..., Any]], click.Command] = click.command(
                self.name,
                cls=getattr(import_module(module), name),
                examples=self.examples,
                context_help=self.context_help,
                params=[each.for_click() for each in self.own],
                context_settings={"allow_interspersed_args": self.interspersed},
                **self.more,
            )
            self._command = make(self.function)
        return self._command


def verb(**more: Any) -> Callable[[Callable[..., Any]], DeclaredVerb]:
    """Return a decorator that makes a function a verb; for the keywords see DeclaredVerb."""
    return lambda function: DeclaredVerb(function, **more)
