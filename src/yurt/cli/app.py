"""Shared by all verbs: the global options, the classes of commands and groups, examples in help."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from importlib import import_module
from typing import Any

import click

from yurt.errors import NotFoundError

CONTEXT_HELP = "Use this context instead of the current one."
ONLY_CONTEXT = "Only runs on this context."

RUN_HELP = (
    "RUN is a run id (TIME-RANDOM), a unique prefix of either part, a name (of the newest run that has it), a job "
    "(CONTEXT:NUMBER), `-` for the newest run or sweep of this project, `@last` for the newest of all, "
    "`@last-sweep` for the newest sweep, or SWEEP.NUMBER for one task of a sweep."
)
"""Added to the help of every command with a parameter RUN; see yurt.lifecycle.select."""


class App:
    """The global options of one call, given before or after the verb, and the warnings so far."""

    def __init__(self) -> None:  # not a dataclass: that would add a tenth to start-up
        self.context = ""
        self.json = False
        self.quiet = False
        self.plain = False
        self.verbose = 0
        self.warnings: list[str] = []


def current() -> App:
    """Return the App of the current call."""
    return click.get_current_context().find_root().ensure_object(App)


def plain() -> bool:
    """Return whether output must consist of words: --plain or YURT_PLAIN."""
    return click.get_current_context(silent=True) is not None and current().plain


def enable_gc() -> None:
    """Turn garbage collection on again, for verbs that run long; `yurt.__main__` turns it off."""
    import gc

    gc.enable()


def _store(name: str) -> Callable[[click.Context, click.Parameter, Any], None]:
    def callback(ctx: click.Context, _parameter: click.Parameter, value: Any) -> None:
        if value:
            setattr(ctx.find_root().ensure_object(App), name, value)

    return callback


def context_names(_ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Return the contexts that complete a word; none if contexts.yaml cannot be read."""
    try:
        from yurt.config import contexts

        found = contexts.load(contexts.default_file())
    except Exception:
        return []
    return [name for name in (*found.contexts, *sorted(found.invalid)) if name.startswith(incomplete)]


def run_names(_ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Return the runs and sweeps that complete a word, newest first: their ids, the second part of their ids, or names.

    After a sweep's id and a dot, return its tasks.
    """
    if incomplete.startswith("@"):
        return [word for word in ("@last", "@last-sweep") if word.startswith(incomplete)]
    try:
        from yurt.sites.folders import store

        first, dot, number = incomplete.partition(".")
        index = store()
        found = index.matching(first)
        if dot:
            (sweep,) = (entry for run in found if (entry := index.get(run)) is not None and entry.run.tasks)
            return [f"{first}.{task}" for task in range(sweep.run.tasks) if str(task).startswith(number)]
    except Exception:
        return []
    ids = [run if run.startswith(incomplete) else run.partition("-")[2] for run in found]
    return ids + (index.names(incomplete) if incomplete else [])


def global_options(context_help: str = CONTEXT_HELP) -> list[click.Parameter]:
    """Return the options that are accepted both before and after the verb.

    Without `context_help`, the help does not list --context: the command ignores it.
    """

    def option(*flags: str, name: str, **more: Any) -> click.Option:
        return click.Option(flags, expose_value=False, callback=_store(name), **more)

    return [
        option(
            "--context",
            name="context",
            metavar="NAME",
            shell_complete=context_names,
            help=context_help or CONTEXT_HELP,
            hidden=not context_help,
        ),
        option("--json", name="json", is_flag=True, help="Print JSON instead of text."),
        option(
            "--plain",
            name="plain",
            is_flag=True,
            envvar="YURT_PLAIN",
            help="Print words instead of bars, colours and columns, for screen readers; also YURT_PLAIN=1.",
        ),
        option("-q", "--quiet", name="quiet", is_flag=True, help="Print no status messages."),
        option("-v", "--verbose", name="verbose", count=True, help="Print more detail."),
    ]


class _WithExamples(click.Command):
    """A command whose help ends with examples, one on each line, never wrapped."""

    examples: Sequence[str] = ()

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            error.ctx = error.ctx or ctx  # click omits it for an option without its value
            raise

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
        self.params = [*self.params, *global_options(context_help)]

    def invoke(self, ctx: click.Context) -> Any:
        from yurt.model.progress import on_slow

        if self.selects_runs and (name := current().context):
            from yurt.config import contexts

            with suppress(NotFoundError):  # runs stay in the index when their context is removed
                contexts.site(name)
        now = ctx.find_root().ensure_object(App)
        on_slow(lambda text: _say(now, text))
        try:
            return super().invoke(ctx)
        finally:
            on_slow(None)


def _say(now: App, text: str) -> None:
    """Print a line about a site that responds slowly."""
    if not (now.json or now.quiet):
        print(f"yurt: {text}", file=sys.stderr, flush=True)


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
        self.params = [*self.params, *global_options(context_help)]

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*self.commands, *self.lazy]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        cmd_name = self.other_names.get(cmd_name, cmd_name)
        if cmd_name not in self.lazy:
            return super().get_command(ctx, cmd_name)
        module, _, attribute = self.lazy[cmd_name][0].partition(":")
        command: click.Command = getattr(import_module(module), attribute)
        return command

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
        made: Verb = click.command(cls=cls, examples=examples, **more)(function)
        if isinstance(group, Group):
            group.add_command(made)
            group.other_names |= dict.fromkeys(also, str(made.name))
        return made

    return decorate
