"""Shared by all verbs: the global options, the classes of commands and groups, examples in help."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from typing import Any

import click

from yurt.cli.call import App, current, enable_gc, invoke, plain
from yurt.cli.completers import context_names, run_names
from yurt.cli.declare import CONTEXT_HELP, NOT_EMPTY, ONLY_CONTEXT, DeclaredVerb, Parameter, global_options

__all__ = [
    "CONTEXT_HELP",
    "ONLY_CONTEXT",
    "RUN_HELP",
    "App",
    "Group",
    "Verb",
    "context_names",
    "current",
    "did_you_mean",
    "enable_gc",
    "every_command",
    "plain",
    "run_names",
    "verb",
]

RUN_HELP = (
    "RUN is a run id (TIME-RANDOM), a unique prefix of either part, a name (of the newest run that has it), a job "
    "(CONTEXT:NUMBER), `-` for the newest run or sweep of this project, `@last` for the newest of all, "
    "`@last-sweep` for the newest sweep, or SWEEP.NUMBER for one task of a sweep."
)
"""Added to the help of every command with a parameter RUN; see yurt.lifecycle.select."""


def _is_given(ctx: click.Context, parameter: click.Parameter) -> bool:
    return ctx.get_parameter_source(parameter.name or "") == click.core.ParameterSource.COMMANDLINE


def _store(name: str) -> Callable[[click.Context, click.Parameter, Any], None]:
    def callback(ctx: click.Context, parameter: click.Parameter, value: Any) -> None:
        if value == "" and name in NOT_EMPTY and _is_given(ctx, parameter):
            raise click.BadParameter("must not be empty", ctx, parameter)
        if value:
            setattr(ctx.find_root().ensure_object(App), name, value)

    return callback


def _global_options(context_help: str) -> list[click.Parameter]:
    """Return click's options for `yurt.cli.declare.global_options`."""
    return [each.for_click(expose_value=False, callback=_store(each.name)) for each in global_options(context_help)]


class _WithExamples(click.Command):
    """A command whose help ends with examples, one on each line, never wrapped."""

    examples: Sequence[str] = ()

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            rest = super().parse_args(ctx, args)
        except click.UsageError as error:
            error.ctx = error.ctx or ctx  # click omits it for an option without its value
            raise
        for each in self.params:
            value = ctx.params.get(each.name or "")
            empty = "" in value if isinstance(value, tuple) else value == ""
            if empty and each.name in NOT_EMPTY and _is_given(ctx, each):
                raise click.BadParameter("must not be empty", ctx, each)
        return rest

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        super().format_help_text(ctx, formatter)
        words = (word for parameter in self.params for word in (parameter.metavar or "").split())
        if any("RUN" in word.strip("[].").partition(":")[0].split("|") for word in words):
            formatter.write_paragraph()
            with formatter.indentation():
                formatter.write_text(RUN_HELP)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        super().format_epilog(ctx, formatter)
        if self.examples:
            with formatter.section("Examples"):
                for example in self.examples:
                    formatter.write(f"{'':{formatter.current_indent}}{example}\n")


class Verb(_WithExamples):
    """A command that is not a group. Examples are required."""

    def __init__(self, *args: Any, examples: Sequence[str], context_help: str = CONTEXT_HELP, **more: Any) -> None:
        super().__init__(*args, **more)
        self.examples = examples
        self.selects_runs = context_help == ONLY_CONTEXT
        self.params = [*self.params, *_global_options(context_help)]

    def invoke(self, ctx: click.Context) -> Any:
        now = ctx.find_root().ensure_object(App)
        return invoke(now, lambda: super(Verb, self).invoke(ctx), selects_runs=self.selects_runs)


class Group(_WithExamples, click.Group):
    """A group of commands. The module of a lazy command is imported when the command is called.

    `lazy` maps the name of a command to ("module:attribute", short help); without a short help it is hidden.
    """

    def __init__(
        self,
        *args: Any,
        lazy: dict[str, tuple[str, str]] | None = None,
        examples: Sequence[str] = (),
        context_help: str = CONTEXT_HELP,
        **more: Any,
    ) -> None:
        super().__init__(*args, **more)
        self.lazy = lazy or {}
        self.other_names: dict[str, str] = {}
        """Words of mrunner, which the help does not list, and the command that each of them means."""
        self.examples = examples
        self.params = [*self.params, *_global_options(context_help)]

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*self.commands, *self.lazy]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        cmd_name = self.other_names.get(cmd_name, cmd_name)
        if cmd_name not in self.lazy:
            return super().get_command(ctx, cmd_name)
        module, _, attribute = self.lazy[cmd_name][0].partition(":")
        found: click.Command | DeclaredVerb = getattr(import_module(module), attribute)
        return found.command if isinstance(found, DeclaredVerb) else found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        loaded = [(name, command.get_short_help_str(80)) for name, command in self.commands.items()]
        with formatter.section("Commands"):
            formatter.write_dl([*loaded, *((name, line) for name, (_where, line) in self.lazy.items() if line)])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            from difflib import get_close_matches

            near = did_you_mean(get_close_matches(args[0], self.list_commands(ctx)))
            raise click.UsageError(f"unknown command '{ctx.command_path} {args[0]}'{near}", error.ctx or ctx) from None


def did_you_mean(near: Sequence[str]) -> str:
    """Return the end of an error about an unknown word; empty if nothing is similar to it."""
    return f"; did you mean '{near[0]}'?" if near else ""


def every_command(root: click.Command, path: str = "yurt") -> Iterator[tuple[str, click.Command]]:
    """Yield every command with its path, such as `yurt lab up`."""
    yield path, root
    if isinstance(root, click.Group):
        context = click.Context(root)
        for name in root.list_commands(context):
            below = root.get_command(context, name)
            if below is not None:
                yield from every_command(below, f"{path} {name}")


def verb(
    group: click.Group | None = None,
    *,
    examples: Sequence[str],
    also: Sequence[str] = (),
    cls: type[Verb] = Verb,
    **more: Any,
) -> Callable[[Callable[..., Any]], Verb]:
    """Return a decorator that makes a function a verb, in a group if one is given; `also` are other names of it."""

    def decorate(function: Callable[..., Any]) -> Verb:
        parameters = function.__dict__.get("__click_params__", [])
        parameters[:] = [each.for_click() if isinstance(each, Parameter) else each for each in parameters]
        made: Verb = click.command(cls=cls, examples=examples, **more)(function)
        if isinstance(group, Group):
            group.add_command(made)
            group.other_names |= dict.fromkeys(also, str(made.name))
        return made

    return decorate
