"""The tables of all verbs: they fit a terminal, use the width of a wide one, and are words with --plain."""

from __future__ import annotations

import contextlib
import io
import re
import time
from collections.abc import Iterator

import click
import pytest
from rich.cells import cell_len

from tests.user import User
from yurt.cli import app, main, progress
from yurt.cli.app import every_command
from yurt.cli.root import root
from yurt.cli.terminal import safe
from yurt.model.progress import Event
from yurt.model.run import Run, Status
from yurt.store import Store

SWEEP, RUN, OTHER = "1nfaaa0-aaaa0", "1nfaaa1-aaaa1", "1nfaaa2-aaaa2"

TABLES = {
    "yurt ps": ["ps", "--cached"],
    "yurt show": ["show", "--cached", SWEEP],
    "yurt retry": ["retry", "--dry-run", RUN, OTHER],
    "yurt diff": ["diff", "--cached", "--stat", RUN, OTHER],
    "yurt context list": ["context", "list"],
    "yurt context show": ["context", "show", "local", "--resolved"],
    "yurt context profiles": ["context", "profiles"],
}
"""Verbs that print a table, and a call of each that needs no site."""

ELSEWHERE = {
    *("yurt metrics", "yurt lab status", "yurt env list", "yurt prune", "yurt cluster", "yurt doctor"),
    *("yurt dev status", "yurt dev backups", "yurt serve list", "yurt storage show", "yurt data ls", "yurt where"),
    *("yurt home conflicts", "yurt home backups", "yurt home status"),
}
"""Verbs whose table needs a site, a lab or a built environment: see test_narrow_tables and their own tests."""

WITHOUT = {
    "yurt " + name
    for name in [
        *("run", "logs", "wait", "cancel", "hold", "release", "shell", "fetch", "import", "login", "completion"),
        *("forward", "why", "trust"),
        "tensorboard",
        "mlflow",
        "storage keep",
        *("env build", "env show", "env remove", "secret set", "secret list", "secret remove"),
        *("race release", "wandb sync"),
        *("agent once", "agent start", "agent status", "agent stop"),
        *("context copy", "context use", "context remove", "context import", "context add", "context edit"),
        *("context probe", "lab up", "lab down", "lab set", "lab index", "lab shell"),
        *(f"lab fault {each}" for each in ("cut", "heal", "kill-node", "start-node", "stop-ctld", "kill-ctld")),
        *(f"lab fault {each}" for each in ("start-ctld", "stop-dbd", "start-dbd", "full", "free", "link", "unlink")),
        "lab fault delay",
        *(f"dev {each}" for each in ("up", "ssh", "code", "connect", "backup", "restore", "extend", "down")),
        *(f"serve {each}" for each in ("jupyter", "tensorboard", "mlflow", "run", "open", "stop")),
        *("home restore", "home install", "home sync", "home profile"),
        *("data put", "data get", "data rm"),
    ]
}
"""Verbs that print sentences; `context probe` prints what `cluster` prints."""

DRAWN = re.compile("[\x1b━╸─│┤└┴•✓✗✔✘█▁-▉]")


class Terminal(io.TextIOWrapper):
    def isatty(self) -> bool:
        return True


@pytest.fixture(scope="module")
def user(tmp_path_factory: pytest.TempPathFactory) -> Iterator[User]:
    """A user with runs, a sweep and a cluster, whose names do not fit 80 columns."""
    with User(tmp_path_factory.mktemp("user")) as found:
        (found.home / "config").mkdir()
        text = "contexts: {big: {type: slurm, slurm_url: me@a-login-node-with-a-long-name.of.a.university.example}}\n"
        (found.home / "config" / "contexts.yaml").write_text(text)
        (found.home / "data").mkdir()
        with Store(f"{found.home}/data/yurt.db") as index:
            for number, name in enumerate((SWEEP, RUN, OTHER)):
                tasks = 0 if number else 3
                run = Run(
                    id=name,
                    context="local",
                    context_type="local",
                    project="p-0000",
                    source="/p",
                    created=time.time(),
                    name="a-name-of-some-words",
                    user="me",
                    host="here",
                    command=["train.py", "--data", "/data/that/all/runs/share", "--seed", str(number)],
                    folder="/nowhere",
                    tasks=tasks,
                )
                states = {"completed": 2, "failed": 1} if tasks else {}
                status = Status(state="failed", reason="killed by signal 9 (KILL)", task_states=states)
                index.add(run, status)
        yield found


def printed(user: User, columns: int, *words: str, **environment: str) -> str:
    """Return what a call prints to stdout on a terminal of this width."""
    screen = Terminal(io.BytesIO(), "utf8", write_through=True)
    with pytest.MonkeyPatch.context() as patch:
        settings = {"COLUMNS": str(columns), "TERM": "xterm-256color", **user.environment, **environment}
        for name, value in settings.items():
            patch.setenv(name, value)
        patch.chdir(user.project)
        errors = Terminal(io.BytesIO(), "utf8", write_through=True)
        with contextlib.redirect_stdout(screen), contextlib.redirect_stderr(errors):
            code = main.run([*words])
        assert code == 0, errors.buffer.getvalue().decode()  # type: ignore[attr-defined]
    return screen.buffer.getvalue().decode()  # type: ignore[attr-defined,no-any-return]


def bare(text: str) -> list[str]:
    return [line.rstrip() for line in re.sub("\x1b\\[[0-9;]*m", "", text).splitlines()]


def test_every_verb_is_known_here() -> None:
    every = {path for path, command in every_command(root) if not isinstance(command, click.Group)}
    assert every <= {*TABLES, *ELSEWHERE, *WITHOUT}, "add new verbs to the lists above"


@pytest.mark.parametrize("words", TABLES.values(), ids=TABLES)
def test_tables_fit_and_use_the_width(user: User, words: list[str]) -> None:
    shown = {columns: bare(printed(user, columns, *words)) for columns in (60, 80, 200)}
    for columns, lines in shown.items():
        assert max(map(cell_len, lines)) <= columns, "\n".join(lines)
    assert not any("…" in line for line in shown[200]), shown[200]
    assert len(shown[200]) <= len(shown[80]) <= len(shown[60]), "a wide terminal has fewer folded lines"


@pytest.mark.parametrize("words", TABLES.values(), ids=TABLES)
def test_plain_output_is_words(user: User, words: list[str]) -> None:
    text = printed(user, 80, "--plain", *words)
    assert not DRAWN.search(text) and "…" not in text and "  " not in text, text
    assert text == printed(user, 60, *words, YURT_PLAIN="1"), "the width does not matter"
    assert re.search(r"^[a-z ]+: \S", text, re.MULTILINE), text


@pytest.mark.parametrize("words", TABLES.values(), ids=TABLES)
@pytest.mark.parametrize("environment", [{"NO_COLOR": "1"}, {"TERM": "dumb"}], ids=lambda each: next(iter(each)))
def test_no_colours(user: User, words: list[str], environment: dict[str, str]) -> None:
    assert "\x1b" not in printed(user, 80, *words, **environment)


def test_colours_without_them(user: User) -> None:
    assert "\x1b[31m" in printed(user, 80, "ps", "--cached", NO_COLOR="")
    assert "\x1b[1m" in printed(user, 80, "context", "list", NO_COLOR="")


def test_progress_is_lines() -> None:
    errors = Terminal(io.BytesIO(), "utf8", write_through=True)
    with click.Context(root) as context, contextlib.redirect_stderr(errors):
        context.ensure_object(app.App).plain = True
        with progress.watching() as watch:
            watch(Event("one"))
            watch(Event("two", 1, 2))
    assert errors.buffer.getvalue() == b"one\ntwo\n"  # type: ignore[attr-defined]


def test_output_of_runs_without_colours() -> None:
    assert safe(b"\x1b[31mred\x1b[0m \x1b[2K50%\n", plain=True) == b"red 50%\n"
