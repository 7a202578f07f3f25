"""Help pages at 80 columns, and values of options: each error is one clear sentence with a useful hint."""

from __future__ import annotations

import re
import shlex

import click
import pytest

from tests.user import User, said
from yurt.cli import main
from yurt.cli.app import CONTEXT_HELP, ONLY_CONTEXT, RUN_HELP, Group, Verb, every_command
from yurt.cli.root import root

COMMANDS = dict(every_command(root))


def page(path: str) -> str:
    """Return the help of a command on a terminal with 80 columns."""
    context = click.Context(COMMANDS[path], info_name=path, terminal_width=80)
    return COMMANDS[path].get_help(context)


def examples(path: str) -> list[str]:
    """Return the lines below `Examples:`, with their indent."""
    return page(path).partition("\nExamples:\n")[2].splitlines()


def called(example: str) -> tuple[str, list[str]]:
    """Return the path of the command that an example calls, and its arguments up to a redirection or `&&`."""
    words = shlex.split(re.split(r" (?:[<>|]|&&) ", example)[0])
    path, rest = words[0], words[1:]
    while rest and f"{path} {rest[0]}" in COMMANDS:
        path = f"{path} {rest.pop(0)}"
    return path, rest


@pytest.mark.parametrize("path", COMMANDS)
def test_examples_can_be_copied(path: str) -> None:
    command = COMMANDS[path]
    assert isinstance(command, Verb | Group)
    lines = examples(path)
    assert lines == [f"  {example}" for example in command.examples], "an example is wrapped or missing"
    for line in lines:
        assert len(line) <= 80 and line.startswith("  yurt "), line
        target, arguments = called(line)
        assert target == path or isinstance(command, Group), f"{line} calls {target}"
        below = COMMANDS[target]
        context = below.context_class(below, info_name=target, **below.context_settings)
        below.make_parser(context).parse_args([*arguments])  # raises NoSuchOption


def test_an_example_with_an_unknown_option_is_noticed() -> None:
    target, arguments = called("  yurt context show big --no-such && echo --done")
    assert (target, arguments) == ("yurt context show", ["big", "--no-such"])
    command = COMMANDS[target]
    with pytest.raises(click.NoSuchOption):
        command.make_parser(click.Context(command)).parse_args(arguments)


@pytest.mark.parametrize("path", COMMANDS)
def test_help_fits_80_columns(path: str) -> None:
    text = page(path)
    assert max(map(len, text.splitlines())) <= 80
    assert not re.search(r"\[[^\]]*x?[<>]=?x?[^\]]*\]", text), "a range such as [x>=1]"
    first, *_rest = (COMMANDS[path].help or "").splitlines()
    assert first.endswith(".") and len(first) < 64
    for parameter in COMMANDS[path].params:
        if isinstance(parameter, click.Option):
            words = parameter.help or ""
            assert words[:1].isupper() and words.endswith("."), f"{path} {parameter.opts}: {words}"


def test_every_command_that_takes_a_run_explains_run() -> None:
    explained = {path for path in COMMANDS if " ".join(page(path).split()).count(RUN_HELP) == 1}
    assert explained == {path for path in COMMANDS if re.search(r"\bRUN\b", page(path))}
    assert {"yurt run", "yurt show", "yurt logs", "yurt prune", "yurt diff", "yurt shell"} <= explained


def test_context_is_listed_only_where_it_has_a_meaning() -> None:
    texts = {path: re.findall(r"^  --context NAME +(.*)$", page(path), re.MULTILINE) for path in COMMANDS}
    filters = {path for path, found in texts.items() if found == [ONLY_CONTEXT]}
    chooses = {path for path, found in texts.items() if found == [CONTEXT_HELP]}
    assert filters == {"yurt ps", "yurt prune", "yurt retry"}
    context = {f"yurt context{name}" for name in ("", " show", " edit", " probe")}
    env = {f"yurt env{name}" for name in ("", " build", " list", " show", " remove")}
    dev = {"yurt dev", "yurt dev up"}
    data = {f"yurt data{name}" for name in ("", " put", " get", " ls", " rm")}
    serve = {f"yurt serve{name}" for name in ("", " jupyter", " tensorboard", " mlflow", " run")}
    assert chooses == {
        "yurt",
        "yurt run",
        "yurt shell",
        "yurt cluster",
        "yurt storage",
        "yurt storage show",
        "yurt login",
        *context,
        *env,
        *data,
        *dev,
        *serve,
    }


def test_a_hidden_context_is_accepted(user: User) -> None:
    assert user.quick("completion", "bash", "--context", "local").code == 0


@pytest.mark.parametrize("path", [path for path, command in COMMANDS.items() if isinstance(command, Group)])
def test_short_help_is_one_complete_line(path: str) -> None:
    group = COMMANDS[path]
    assert isinstance(group, Group)
    lines = page(path).partition("\nCommands:\n")[2].partition("\n\n")[0].splitlines()
    names = [name for name in group.list_commands(click.Context(group)) if not COMMANDS[f"{path} {name}"].hidden]
    assert [line.split()[0] for line in lines] == names
    for name, line in zip(names, lines, strict=True):
        below = COMMANDS[f"{path} {name}"]
        assert line.split(maxsplit=1)[1] == (below.help or "").splitlines()[0], "truncated or different"


@pytest.mark.parametrize(
    ("words", "sentence", "hint"),
    [
        (["ps", "--limit", "0"], "--limit must be an integer of at least 1, not '0'", "see `yurt ps --help`"),
        (["ps", "-n", "x"], "--limit must be an integer of at least 1, not 'x'", "see `yurt ps --help`"),
        (["run", "--seed", "x", "a"], "--seed must be an integer, not 'x'", "see `yurt run --help`"),
        (
            ["lab", "fault", "delay", "alpha", "--ms", "nan"],
            "--ms must be a number of at least 0, not 'nan'",
            "see `yurt lab fault delay --help`",
        ),
        (["ps", "--limti", "3"], "unknown option '--limti'; did you mean '--limit'?", "see `yurt ps --help`"),
        (["ps", "--zzz"], "unknown option '--zzz'", "see `yurt ps --help`"),
        (["ps", "--limit"], "option '--limit' requires an argument", "see `yurt ps --help`"),
        (["ps", "--json=3"], "option '--json' does not take a value", "see `yurt ps --help`"),
        (["show"], "missing argument 'RUN'", "see `yurt show --help`"),
        (["context", "add", "x"], "missing option '--slurm-url'", "see `yurt context add --help`"),
        (["diff", "a", "b", "c", "d"], "got unexpected extra arguments (c d)", "see `yurt diff --help`"),
        (["contxt"], "unknown command 'yurt contxt'; did you mean 'context'?", "see `yurt --help`"),
        (["zzz"], "unknown command 'yurt zzz'", "see `yurt --help`"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_wrong_usage_is_one_sentence(user: User, words: list[str], sentence: str, hint: str) -> None:
    answer = user.quick(*words)
    assert said(answer, 2) == sentence
    assert answer.err.splitlines()[1] == f"  hint: {hint}"
    path = re.findall("`(.*) --help`", hint)
    assert path[0] in COMMANDS


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0", 0),
        ("0.3", 0.3),
        (".5", 0.5),
        ("600", 600),
        ("90s", 90),
        ("10m", 600),
        ("2h", 7200),
        ("1h30m", 5400),
        ("1d", 86400),
        ("05:00", 300),
        ("01:00:00", 3600),
    ],
)
def test_durations(monkeypatch: pytest.MonkeyPatch, text: str, seconds: float) -> None:
    got: list[float | None] = []

    def wait_for(_runs: object, *, timeout: float | None, **_more: object) -> int:
        got.append(timeout)
        return 0

    monkeypatch.setattr("yurt.lifecycle.wait.wait_for", wait_for)
    assert main.run(["wait", "-", "--timeout", text]) == 0
    assert got == [seconds]


@pytest.mark.parametrize("text", ["10x", "", "m", "-1", "1.5h", "inf", "nan", "1e3", "0s", "1.2.3", "٣"])
def test_a_wrong_duration(user: User, text: str) -> None:
    answer = user.quick("wait", "-", "--timeout", text)
    assert said(answer, 2) == f"--timeout: '{text}' is not a duration"
    assert answer.err.splitlines()[1] == "  hint: for example: `--timeout 10m`"


@pytest.mark.parametrize("text", ["4", "4s", "1h1s", "2h", "3601"])
def test_a_duration_out_of_bounds(user: User, text: str) -> None:
    answer = user.quick("context", "probe", "--deep", "--timeout", text)
    assert said(answer, 2) == f"--timeout must be at least 5s and at most 60m, not '{text}'"
    assert answer.err.splitlines()[1] == "  hint: for example: `--timeout 2m`"


@pytest.mark.parametrize(("words", "seconds"), [([], 120), (["--timeout", "90"], 90), (["--timeout", "1h"], 3600)])
def test_timeout_of_a_probe_is_a_duration(
    user: User, monkeypatch: pytest.MonkeyPatch, words: list[str], seconds: int
) -> None:
    got: list[int] = []

    def probe(_name: str, *, timeout: int, **_more: object) -> None:
        got.append(timeout)
        raise KeyboardInterrupt

    monkeypatch.setattr("yurt.contexts.probe.probe", probe)
    assert user.quick("context", "probe", "--deep", *words).code == 130
    assert got == [seconds] and isinstance(got[0], int)
