"""The frame of the command line: options before and after the verb, envelopes, errors, exit codes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import click
import pexpect
import pytest

from tests.calls import YURT, Yurt
from yurt.cli.app import Group, Verb, every_command
from yurt.cli.root import root
from yurt.errors import CODES, UserError, YurtError


@pytest.mark.parametrize(("words", "command"), [pytest.param(*pair, id=pair[0]) for pair in every_command(root)])
def test_each_command_has_help_examples_and_the_global_options(words: str, command: click.Command) -> None:
    assert isinstance(command, Verb | Group)
    assert command.help and command.examples
    names = {name for parameter in command.params for name in parameter.opts}
    assert {"--json", "--context", "--quiet", "--verbose"} <= names
    text = command.get_help(click.Context(command, info_name=words))
    assert "Examples:" in text


def test_short_help_of_lazy_commands_is_the_first_line_of_their_help() -> None:
    for words, command in every_command(root):
        if isinstance(command, Group):
            for name, (_where, line) in command.lazy.items():
                below = command.get_command(click.Context(command), name)
                assert below is not None, f"{words} {name}"
                assert not line if below.hidden else (below.help or "").splitlines()[0] == line, f"{words} {name}"


def test_version_and_help(yurt: Yurt) -> None:
    assert yurt("--version").out.startswith("yurt 0.")
    assert "Commands:" in yurt("--help").out == yurt("-h").out


def test_without_a_verb_the_help_is_shown(yurt: Yurt) -> None:
    for words in ([], ["lab"], ["context"], ["lab", "fault"]):
        answer = yurt(*words)
        assert answer.code == 2 and answer.out == "" and "\nCommands:\n" in answer.err
        hint = f"see `{' '.join(['yurt', *words])} --help`"
        for arguments in ([*words, "--json"], ["--json", *words]):
            error = yurt(*arguments).json["error"]
            assert (error["code"], error["message"], error["hint"]) == ("usage", "missing command", hint)


def test_json_before_or_after_the_verb(yurt: Yurt) -> None:
    after, before = yurt("completion", "fish", "--json"), yurt("--json", "completion", "fish")
    assert after.code == before.code == 0
    assert after.json == before.json
    assert set(after.json) == {"yurt", "kind", "data", "warnings"}
    assert after.json["yurt"] == 1 and after.json["kind"] == "completion"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["lba"], "unknown command 'yurt lba'; did you mean 'lab'?\n"),
        (["lab", "stauts"], "unknown command 'yurt lab stauts'; did you mean 'status'?\n"),
        (["completion", "tcsh"], "SHELL: 'tcsh' is not one of 'bash', 'zsh', 'fish'\n"),
        (["completion"], "missing argument 'SHELL'; choose from bash, zsh, fish\n"),
        (["lab", "up", "--bogus"], "unknown option '--bogus'"),
        (["lab", "up", "gamma"], "CLUSTERS: 'gamma' is not one of 'alpha', 'beta'\n"),
        (["lab", "status", "--instance", "UPPER"], "invalid lab name 'UPPER'"),
    ],
)
def test_wrong_usage(yurt: Yurt, arguments: list[str], said: str) -> None:
    plain = yurt(*arguments)
    assert plain.code == 2 and plain.out == ""
    assert said in plain.err and len(plain.err.splitlines()) == 2
    assert "hint:" in plain.err and "Traceback" not in plain.err
    envelope = yurt(*arguments, "--json")
    assert envelope.code == 2 and envelope.err == ""
    error = envelope.json["error"]
    assert error["code"] == "usage" and error["fault"] == "user" and error["hint"]


def test_unexpected_exception_is_a_report_not_a_traceback(tmp_path: Path) -> None:
    program = (
        "import sys; from yurt.cli import main, completion\n"
        "def fail(): raise ZeroDivisionError('what\\nnow')\n"
        "completion.completion.callback = lambda shell: fail()\n"
        "sys.exit(main.run(['completion', 'bash']))"
    )
    environment = {**os.environ, "YURT_DATA_HOME": str(tmp_path / "data")}
    argv = [str(Path(YURT).parent / "python"), "-c", program]
    done = subprocess.run(argv, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 70
    assert done.stderr.startswith("yurt: internal error: ZeroDivisionError: what\n") and "Traceback" not in done.stderr
    report = tmp_path / "data" / "bug-report.txt"
    assert str(report) in done.stderr and "Traceback" in report.read_text()
    assert report.stat().st_mode & 0o777 == 0o600 and report.parent.stat().st_mode & 0o777 == 0o700


def test_colour_only_on_a_terminal(yurt: Yurt, tmp_path: Path) -> None:
    assert "\033[" not in yurt("bogus").err
    environment = {**os.environ, "TERM": "xterm-256color"}
    environment.pop("NO_COLOR", None)
    assert "\033[31m" in str(pexpect.run(f"{YURT} bogus", env=environment, encoding="utf8"))
    assert "\033[" not in str(pexpect.run(f"{YURT} bogus", env={**environment, "NO_COLOR": "1"}, encoding="utf8"))


def test_output_that_cannot_be_written() -> None:
    def outcome(script: str) -> tuple[str, str]:
        done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False)
        return done.stdout.strip(), done.stderr

    for verb in ("completion bash", "context list", "context list --json", "ps --cached --json", "ps --json"):
        assert outcome(f"{YURT} {verb} | true; echo ${{PIPESTATUS[0]}}") == ("141", ""), verb
    code, said = outcome(f"{YURT} completion bash > /dev/full; echo $?")
    assert code == "5" and said == "yurt: cannot write the output: No space left on device\n"
    code, said = outcome(f"{YURT} completion bash --json > /dev/full; echo $?")
    assert code == "5" and "Traceback" not in said
    for more in ("ps --cached --json", "ps --json"):  # parsed without click
        assert outcome(f"{YURT} {more} >&-; echo $?") == ("0", "")
        code, said = outcome(f"env -u PYTHONUNBUFFERED {YURT} {more} > /dev/full; echo $?")
        assert code == "5" and "Traceback" not in said
    for more in ("", "--json", "--help"):
        assert outcome(f"{YURT} context list {more} >&-; echo $?") == ("0", "")
        assert outcome(f"{YURT} context list {more} <&- >&- 2>&-; echo $?") == ("0", "")
        code, said = outcome(f"env -u PYTHONUNBUFFERED {YURT} context list {more} > /dev/full; echo $?")
        assert code == "5" and (said.count("\n") == 1 or more == "--json"), said


def test_every_error_names_a_listed_code() -> None:
    with pytest.raises(LookupError):
        UserError("x", code="no-such-code")
    assert all(line.endswith(".") for line in CODES.values())


def test_exit_codes_are_the_documented_ones() -> None:
    def below(kind: type[YurtError]) -> Iterator[type[YurtError]]:
        yield kind
        for child in kind.__subclasses__():
            yield from below(child)

    assert {kind.exit_code for kind in below(YurtError)} <= {2, 3, 4, 5, 70}


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_script(yurt: Yurt, shell: str) -> None:
    answer = yurt("completion", shell)
    assert answer.code == 0 and "_YURT_COMPLETE" in answer.out


def test_bash_completes_verbs_and_choices(tmp_path: Path) -> None:
    environment = {**os.environ, "PATH": f"{Path(YURT).parent}:{os.environ['PATH']}"}
    script = (
        'eval "$(yurt completion bash)"; COMP_WORDS=(%s); COMP_CWORD=%d; _yurt_completion yurt; echo "${COMPREPLY[@]}"'
    )

    def complete(*words: str) -> list[str]:
        text = script % (" ".join(f'"{word}"' for word in words), len(words) - 1)
        argv = ["bash", "-c", text]
        return subprocess.run(argv, env=environment, capture_output=True, text=True, check=True).stdout.split()

    assert complete("yurt", "la") == ["lab"]
    assert complete("yurt", "lab", "s") == ["status", "set", "shell"]
    assert "--instance" in complete("yurt", "lab", "up", "--in")
    assert complete("yurt", "lab", "up", "a") == ["alpha"]


def test_fish_and_zsh_complete_verbs(yurt: Yurt) -> None:
    environment = {**os.environ, "PATH": f"{Path(YURT).parent}:{os.environ['PATH']}"}

    def output(argv: list[str]) -> str:
        return subprocess.run(argv, env=environment, capture_output=True, text=True, check=True).stdout

    if shutil.which("fish") or os.environ.get("CI"):
        assert output(["fish", "-c", 'yurt completion fish | source; complete -C "yurt la"']).startswith("lab")
    if shutil.which("zsh") or os.environ.get("CI"):
        assert output(["zsh", "-fc", 'eval "$(yurt completion zsh)" 2> /dev/null; whence -w _yurt_completion']).strip()
    words = {"_YURT_COMPLETE": "zsh_complete", "COMP_WORDS": "yurt la", "COMP_CWORD": "1"}
    assert "lab" in yurt(environment=words).out.split()


def test_json_error_is_one_line(yurt: Yurt) -> None:
    lines = yurt("bogus", "--json").out.splitlines()
    assert len(lines) == 1 and json.loads(lines[0])["yurt"] == 1
