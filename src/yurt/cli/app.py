"""What every verb shares: the global options, the classes commands are made of, examples in help."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from typing import Any

import click


class App:
    """The global options of one call, wherever on the line they stood, and the warnings so far."""

    def __init__(self) -> None:  # no dataclass: importing and making one costs a tenth of start-up
        self.context = ""
        self.json = False
        self.quiet = False
        self.verbose = 0
        self.warnings: list[str] = []


def current() -> App:
    """The frame of the call under way."""
    return click.get_current_context().find_root().ensure_object(App)


def stay() -> None:
    """For verbs that go on for long: memory is looked after from now on."""
    import gc

    gc.enable()


def _remember(name: str) -> Callable[[click.Context, click.Parameter, Any], None]:
    def callback(ctx: click.Context, _parameter: click.Parameter, value: Any) -> None:
        if value:
            setattr(ctx.find_root().ensure_object(App), name, value)

    return callback


def context_names(_ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Contexts a shell may complete a word to; none where their file cannot be read."""
    try:
        from yurt.config import contexts

        there = contexts.load(contexts.default_file()).contexts
    except Exception:
        return []
    return [name for name in there if name.startswith(incomplete)]


def run_names(_ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Runs and sweeps a shell may complete a word to: their ids, or the second part of them, the newest first.

    After the dot of a sweep's id its tasks.
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
    return [run if run.startswith(incomplete) else run.partition("-")[2] for run in found]


def global_options() -> list[click.Parameter]:
    """Options accepted both before and after the verb."""

    def option(*words: str, name: str, **more: Any) -> click.Option:
        return click.Option(words, expose_value=False, callback=_remember(name), **more)

    return [
        option(
            "--context",
            name="context",
            metavar="NAME",
            shell_complete=context_names,
            help="Where to run, instead of the current context.",
        ),
        option("--json", name="json", is_flag=True, help="Print one JSON envelope."),
        option("-q", "--quiet", name="quiet", is_flag=True, help="Print only what was asked for."),
        option("-v", "--verbose", name="verbose", count=True, help="Say more; twice, still more."),
    ]


class _WithExamples(click.Command):
    """A command whose help ends with examples."""

    examples: Sequence[str] = ()

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        super().format_epilog(ctx, formatter)
        if self.examples:
            with formatter.section("Examples"):
                for example in self.examples:
                    formatter.write_text(example)


class Verb(_WithExamples):
    """A command that does something. Its examples are obligatory."""

    def __init__(self, *args: Any, examples: Sequence[str], **more: Any) -> None:
        super().__init__(*args, **more)
        self.examples = examples
        self.params = [*self.params, *global_options()]


class Group(_WithExamples, click.Group):
    """A group whose commands live in other modules, imported only when one of them is called.

    `lazy` maps a command to ("module:attribute", its line in the group's help).
    """

    def __init__(
        self, *args: Any, lazy: dict[str, tuple[str, str]] | None = None, examples: Sequence[str] = (), **more: Any
    ) -> None:
        super().__init__(*args, **more)
        self.lazy = lazy or {}
        self.examples = examples
        self.params = [*self.params, *global_options()]

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*self.commands, *self.lazy]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.lazy:
            return super().get_command(ctx, cmd_name)
        module, _, attribute = self.lazy[cmd_name][0].partition(":")
        command: click.Command = getattr(import_module(module), attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        known = [(name, command.get_short_help_str(80)) for name, command in self.commands.items()]
        with formatter.section("Commands"):
            formatter.write_dl([*known, *((name, line) for name, (_where, line) in self.lazy.items())])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            raise self._with_nearest(ctx, args[0], error) from None

    def _with_nearest(self, ctx: click.Context, word: str, error: click.UsageError) -> click.UsageError:
        from difflib import get_close_matches

        near = get_close_matches(word, self.list_commands(ctx), n=1)
        text = f"there is no command '{word}' in '{ctx.command_path}'"
        return click.UsageError(text + (f"; did you mean '{near[0]}'?" if near else ""), ctx=error.ctx or ctx)


def every_command(root: click.Command, words: str = "yurt") -> Iterator[tuple[str, click.Command]]:
    """Every command there is, with the words that call it."""
    yield words, root
    if isinstance(root, click.Group):
        context = click.Context(root)
        for name in root.list_commands(context):
            below = root.get_command(context, name)
            if below is not None:
                yield from every_command(below, f"{words} {name}")


def verb(
    group: click.Group | None = None, *, examples: Sequence[str], **more: Any
) -> Callable[[Callable[..., Any]], Verb]:
    """Decorator: make a function a verb, in a group or on its own."""

    def decorate(function: Callable[..., Any]) -> Verb:
        made: Verb = click.command(cls=Verb, examples=examples, **more)(function)
        if group is not None:
            group.add_command(made)
        return made

    return decorate
