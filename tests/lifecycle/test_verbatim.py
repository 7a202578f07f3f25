"""What a user types reaches their code unchanged: arguments, variables, names, paths, on every context.

One run carries hundreds of values that hypothesis made; the command writes down what it got.
"""

from __future__ import annotations

import json
import os
import re
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.user import User, said
from yurt.backends.job import script
from yurt.backends.registry import host_of
from yurt.config import contexts
from yurt.errors import UserError
from yurt.lifecycle.plan.plan import plan
from yurt.lifecycle.plan.request import Request
from yurt.model.context import LOCAL
from yurt.model.params import ARGUMENT_LIMIT, VARIABLE_LIMIT, shown, typed, variable

DUMP = """\
import json, os, sys
got = {"argv": [os.fsencode(word).hex() for word in sys.argv[1:]], "cwd": os.getcwdb().hex()}
got["environment"] = {name.hex(): value.hex() for name, value in os.environb.items()}
json.dump(got, open(os.environ["YURT_OUTPUTS"] + "/dump.json", "w"))
"""

MARK = f"/tmp/yurt-was-here-{os.getpid()}"
"""A file that exists only if something was executed by mistake."""

AWKWARD = [
    "",
    " ",
    "'",
    '"',
    "'\"'\"'",
    f"$(touch {MARK})",
    f"`touch {MARK}`",
    "${HOME}",
    "$HOME",
    "\\",
    "\\\n",
    "\n",
    "\n\n",
    "\r",
    "\r\n",
    "a\rb",
    "\t",
    "*",
    "?",
    "[a-z]*",
    "{a,b}",
    "{key}",
    "~",
    "~root",
    "!!",
    "#",
    "# no comment",
    ";",
    "&",
    "|",
    f"> {MARK}",
    "-n",
    "-",
    "-x",
    "=",
    "a=b",
    "%s %d",
    "\x01\x02\x7f\x1b[31m",
    "ü€🦜",
    "e\u0301",
    "\u2028\u2029\ufeff",
    "\udcff\udcfe",
    "\udc80'\udcff",
    "0.10",
    "1e-4",
    "007",
    "1e400",
    "123456789012345678901234567890",
    "[1,  2]",
    "true",
    "nan",
    "x" * 5000,
]


def many(strategy: st.SearchStrategy[str], count: int) -> list[str]:
    """Values of a strategy, the same ones every time."""
    found: dict[str, None] = {}

    @settings(max_examples=count, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
    @given(strategy)
    def collect(value: str) -> None:
        found[value] = None

    collect()
    return list(found)


@cache
def values() -> list[str]:
    no_nul = st.characters(exclude_characters="\0", exclude_categories=["Cs"])
    bits = st.binary(max_size=60).map(lambda value: os.fsdecode(value.replace(b"\0", b"")))
    found = [*AWKWARD, *many(st.text(no_nul, max_size=60), 150), *many(bits, 150)]
    return [text for text in found if typed(text) is not None]  # null is left out, as documented


@cache
def names() -> list[str]:
    """Names of variables, some of which job.sh or shells use as well."""
    own = re.findall(r"\b([a-z_]\w*)=", script.below_the_head() + "kind= run= code= place= launcher= limit=")
    made = many(st.from_regex(r"V_[A-Za-z0-9_]{0,12}", fullmatch=True), 60)
    return [*sorted(set(own)), *made, "IFS", "CDPATH", "PS4", "TZ"]


def python(context: str) -> str:
    """A Python that is not a shell script, as pyenv's is: shells do not pass on some variables."""
    return sys.executable if context == "local" else "/usr/bin/python3"


def ran(user: User, context: str, *words: str, cwd: Path | None = None, **environment: str) -> dict[str, Any]:
    """What one run received, and its record."""
    done = user("--json", "--context", context, "run", "--wait", *words, cwd=cwd, **environment)
    assert done.code == 0, done
    run: dict[str, Any] = done.json["data"]["run"]
    with pytest.MonkeyPatch.context() as patch:
        for name, value in user.environment.items():
            patch.setenv(name, value)
        host = host_of(contexts.named(context))
        answer = host.run('cd "$1" && cat outputs/dump.json && echo && cat params.json', run["folder"])
    got, parameters = (json.loads(text) for text in answer.text.split("\n", 1))
    got["argv"] = [os.fsdecode(bytes.fromhex(word)) for word in got["argv"]]
    got["cwd"] = os.fsdecode(bytes.fromhex(got["cwd"]))
    got["environment"] = {
        os.fsdecode(bytes.fromhex(name)): os.fsdecode(bytes.fromhex(value))
        for name, value in got["environment"].items()
    }
    return {**got, "run": run, "parameters": parameters}


@pytest.fixture
def person(request: pytest.FixtureRequest, context: str) -> User:
    """A user with the context of a test."""
    found: User = request.getfixturevalue("user" if context == "local" else "laptop")
    return found


EVERYWHERE = pytest.mark.parametrize(
    "context",
    ["local", pytest.param("alpha", marks=pytest.mark.lab), pytest.param("beta", marks=pytest.mark.lab)],
)
LOCAL_AND_SLURM = pytest.mark.parametrize("context", ["local", pytest.param("alpha", marks=pytest.mark.lab)])


@EVERYWHERE
def test_arguments_variables_and_parameters(person: User, context: str) -> None:
    texts = values()
    half = len(texts) // 2
    variables = {name: texts[index] for index, name in enumerate(names())}
    parameters = {f"p{index}": value for index, value in enumerate(texts)}
    words = [*(f"--var={name}={value}" for name, value in variables.items())]
    words += [*(f"--param={name}={value}" for name, value in parameters.items())]
    after = [*texts[half:], "--", "--flag", "--key=value", "--other", "x"]
    command = [python(context), "-c", DUMP, *texts[:half]]
    got = ran(person, context, "--no-snapshot", *words, *command, "--", *after)
    expected = [*texts[:half], *after]
    for name, value in parameters.items():
        expected += [f"--{name}", value]
    assert got["argv"] == expected
    there = got["environment"]
    assert {name: there.get(name) for name in variables} == variables
    assert {name: there.get(variable(name)) for name in parameters} == parameters
    assert (there["YURT_PARAM_FLAG"], there["YURT_PARAM_KEY"], there["YURT_PARAM_OTHER"]) == ("true", "value", "x")
    read = {name: typed(value) for name, value in parameters.items()}
    assert {name: got["parameters"][name] for name in read} == {
        name: shown(value) if isinstance(value, str) else value for name, value in read.items()
    }
    assert got["run"]["params"] == got["parameters"]
    assert not Path(MARK).exists()


@LOCAL_AND_SLURM
def test_long_values(person: User, context: str) -> None:
    """One value of the maximum length of Linux, and a megabyte of values."""
    longest = "é" * (ARGUMENT_LIMIT // 2) + "x"
    assert len(os.fsencode(longest)) == ARGUMENT_LIMIT
    others = [chr(ord("a") + index) * 100_000 for index in range(7)]
    held = "y" * (ARGUMENT_LIMIT - len("LONG="))
    (person.project / "yurt.yaml").write_text(f"variables:\n  LONG: {held}\n")
    parameters = [f"--param=p={'z' * VARIABLE_LIMIT}", f"--param=q={'z' * (VARIABLE_LIMIT + 1)}"]
    command = [python(context), "-c", DUMP, longest, "--", *others]
    got = ran(person, context, "--no-snapshot", *parameters, *command)
    assert got["argv"][0] == longest and got["argv"][1:8] == others
    assert got["argv"][8:] == ["--p", "z" * VARIABLE_LIMIT, "--q", "z" * (VARIABLE_LIMIT + 1)]
    assert got["environment"]["LONG"] == held
    assert got["environment"]["YURT_PARAM_P"] == "z" * VARIABLE_LIMIT
    assert "YURT_PARAM_Q" not in got["environment"]
    assert got["parameters"]["q"] == "z" * (VARIABLE_LIMIT + 1)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0.10", 0.1),
        ("1e-4", 0.0001),
        ("7", 7),
        ("-3", -3),
        ("007", "007"),
        ("+7", "+7"),
        ("1e400", "1e400"),
        ("123456789012345678901234567890", 123456789012345678901234567890),
        ("nan", "nan"),
        ("true", True),
        ("True", "True"),
        ("null", None),
        ("[1,  2]", [1, 2]),
        ('{"a": 1}', '{"a": 1}'),
        ('"x"', '"x"'),
        ("", ""),
        ("\udcff", "\udcff"),
    ],
)
def test_what_a_text_stands_for(text: str, value: object) -> None:
    found = typed(text)
    assert (found, type(found)) == (value, type(value))


AWKWARD_NAME = 'it\'s a "$(touch mark)" `touch mark` ü *~ -n'


@EVERYWHERE
def test_a_storage_folder_with_any_name(person: User, context: str) -> None:
    below = str(person.home) if context == "local" else "$SCRATCH"
    name = f"{AWKWARD_NAME}{os.getpid()}"
    storage = f"{below}/{name}"
    got = ran(person, context, "--no-snapshot", python(context), "-c", DUMP, YURT_STORAGE_DIR=storage)
    folder = got["run"]["folder"]
    assert f"/{name}/yurt/projects/" in folder
    assert got["environment"]["YURT_RUN_DIR"] == folder
    assert got["cwd"] == (str(person.project) if context == "local" else f"{folder}/work")
    assert not (person.project / "mark").exists() and not Path("mark").exists()


@pytest.mark.parametrize(
    ("context", "name"),
    [
        ("local", AWKWARD_NAME),
        ("local", "two\nlines\r"),
        ("local", "-rf"),
        ("local", "\udcff\udcfe"),
        pytest.param("alpha", AWKWARD_NAME, marks=pytest.mark.lab),
        pytest.param("beta", "\udcff\n", marks=pytest.mark.lab),
    ],
)
def test_a_project_folder_with_any_name(person: User, context: str, name: str) -> None:
    """Its code is uploaded, and found again from a subfolder."""
    below = person.home / name / "sub folder"
    below.mkdir(parents=True)
    (person.home / name / "yurt.yaml").write_text("{}")
    (below / "dump.py").write_text(DUMP)
    got = ran(person, context, "dump.py", "--", "a b", cwd=below)
    assert got["argv"] == ["a b"] and got["cwd"] == f"{got['run']['folder']}/work/sub folder"
    assert got["run"]["source"] == shown(str(person.home / name))
    assert re.fullmatch(r"[a-z0-9._-]+-[0-9a-z]{4}", got["run"]["project"])


def test_a_project_folder_in_place(user: User) -> None:
    for name in ('in it\'s "$(id)"\n place', "-in place"):
        (user.home / name).mkdir()
        got = ran(user, "local", "--no-snapshot", python("local"), "-c", DUMP, cwd=user.home / name)
        assert got["cwd"] == str(user.home / name)


def test_names_tags_and_notes(user: User) -> None:
    values = [value for value in AWKWARD if value]
    got = ran(
        user, "local", "--no-snapshot", "--name", "\n".join(values), "--note", "\r".join(values),
        *(f"--tag={value}" for value in values), python("local"), "-c", DUMP,
    )  # fmt: skip
    run = got["run"]
    assert run["name"] == shown("\n".join(values)) and run["note"] == shown("\r".join(values))
    assert run["tags"] == [shown(value) for value in values]
    assert run["command"] == [python("local"), "-c", DUMP]
    for value in ("$HOME", "\r\n", "\udcff\udcfe"):
        found = user("ps", "--cached", "--json", "--filter", f"tag={value}")
        assert [row["id"] for row in found.json["data"]] == [run["id"]], value
    for words in (["ps", "--cached", "--wide"], ["show", "-"]):
        answer = user(*words)
        assert answer.code == 0 and "\x1b" not in answer.out, words


def test_too_long_values_are_reported(user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(text: str) -> str:
        (user.project / "yurt.yaml").write_text(text)
        answer = user.quick("run", "--no-snapshot", "true")
        sentence = said(answer, 2)
        assert len(answer.err.splitlines()) == 2 and not (user.home / "data" / "yurt.db").exists()
        return sentence

    over = "x" * (ARGUMENT_LIMIT - len("LONG=") + 1)
    assert refused(f"variables: {{LONG: {over}}}") == (
        f"variable LONG is {len(over)} bytes long; the limit of Linux, with the name, is {ARGUMENT_LIMIT}"
    )
    assert "variable NUL contains a NUL byte" in refused('variables: {NUL: "\\0"}')
    several = "".join(f"  V{index}: {'x' * 100_000}\n" for index in range(19))
    assert re.fullmatch(
        r"arguments and variables together are 19\d{5} bytes; the limit of Linux is about 1900000",
        refused(f"variables:\n{several}"),
    )
    for name, value in user.environment.items():
        monkeypatch.setenv(name, value)
    (user.project / "yurt.yaml").unlink()
    for arguments, sentence in (
        (["x" * (ARGUMENT_LIMIT + 1)], f"one argument is {ARGUMENT_LIMIT + 1} bytes"),
        (["a\0b"], "an argument contains a NUL byte"),
        (["x" * 100_000] * 20, "arguments and variables together are 200"),
    ):
        with pytest.raises(UserError, match=sentence):
            plan(LOCAL, Request(words=["true"], arguments=arguments, snapshot=False))


@pytest.mark.parametrize("name", [*sorted(script.SHELLS_OWN), "1A", "A B", "é", "A-B", "\udcff"])
def test_invalid_variable_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv("YURT_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match=r"is reserved by the shell|is not a valid variable name"):
        plan(LOCAL, Request(words=["true"], flags={"variables": {name: "x"}}, snapshot=False))
