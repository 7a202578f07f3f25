"""Likely mistakes in a command line are refused or warned about, with one sentence that says what to type."""

from __future__ import annotations

import os
import subprocess
import time

import msgspec
import pytest

from tests.calls import YURT
from tests.lifecycle.test_run import CONTEXTS, FACTS, NOWHERE
from tests.user import User, said
from yurt.config import facts as kept

WRONG = [
    (["--grid", "lr=0.1", "0.01", "train.py"], "'0.01' is not a command", "`--grid lr=0.1,0.01`"),
    (["--grid", "lr=0.1,", "0.01,", "1e-3", "train.py"], "'0.01,' is not a command", "`--grid lr=0.1,0.01,1e-3`"),
    (["--zip", "lr=1", "2", "--", "--x", "1"], "'2' is not a command", "`--zip lr=1,2`"),
    (["--grid", "lr=1..x", "train.py"], "--grid lr has the range 1..x, but a range needs numbers", "`--grid lr=1..5`"),
    (
        ["--gpu", "train.py"],
        "no script or command given: --gpus took the script 'train.py' as its value",
        "`yurt run --gpus 1 train.py`",
    ),
    (["--gpus", "train.py", "x"], "--gpus took the script 'train.py' as its value", "`yurt run --gpus 1 train.py`"),
    (["--time", "train.py", "--lr", "1"], "--time took the script 'train.py' as its value", "`yurt run --time 2h"),
    (
        ["--name", "train.py"],
        "no script or command given: --name took the script 'train.py' as its value",
        "`yurt run --name VALUE train.py`",
    ),
]


@pytest.mark.parametrize(("words", "sentence", "hint"), WRONG, ids=lambda value: " ".join(value)[:40])
def test_a_mistake_is_refused(user: User, words: list[str], sentence: str, hint: str) -> None:
    assert said(user.quick("run", *words), 2).startswith(sentence)
    assert hint in user.quick("run", "--json", *words).json["error"]["hint"]
    assert user.contents() == []


def warnings(user: User, *words: str) -> list[str]:
    done = user.quick("run", "--dry-run", "--json", *words)
    assert done.code == 0, done
    found: list[str] = done.json["warnings"]
    return found


@pytest.mark.parametrize(
    "words",
    [["train.py", "--time", "2h"], ["train.py", "--time=2h"], ["python", "train.py", "--time", "2h"]],
    ids=" ".join,
)
def test_an_option_of_yurt_after_the_script_is_passed_on_with_a_warning(user: User, words: list[str]) -> None:
    done = user.quick("run", "--dry-run", "--json", *words)
    assert done.json["warnings"] == ["--time was passed to the script; yurt's own --time goes before the script"]
    assert done.json["data"]["run"]["command"] == words
    assert done.json["data"]["run"]["resources"]["minutes"] is None


def test_an_option_that_the_script_defines_is_no_mistake(user: User) -> None:
    (user.project / "train.py").write_text("parser.add_argument('--time')\n")
    assert warnings(user, "train.py", "--time", "2h") == []
    assert warnings(user, "train.py", "--times", "2", "--help") == []
    assert warnings(user, "train.py", "--name", "x") == [
        "--name was passed to the script; yurt's own --name goes before the script"
    ]


def test_options_of_other_programs_are_no_mistake(user: User) -> None:
    assert warnings(user, "mpirun", "--nodes", "2", "python", "train.py") == []
    assert warnings(user, "train.py", "--", "--time", "2h") == []


def test_a_word_after_a_grid_may_be_one_of_its_values(user: User) -> None:
    assert warnings(user, "--grid", "optimizer=adam", "sgd-momentum", "train.py") == [
        "the command is 'sgd-momentum'; if it is a value of --grid, use commas: `--grid optimizer=adam,sgd-momentum`"
    ]
    assert warnings(user, "--grid", "optimizer=adam,sgd", "torchrun-of-the-site", "train.py") == []


@pytest.mark.parametrize("address", ["host:22", "ssh://host:22", "alice@host:22"])
def test_a_port_in_the_address_of_a_cluster(user: User, address: str) -> None:
    host = address.removeprefix("ssh://").removesuffix(":22")
    answer = user.quick("context", "add", "big", "--slurm-url", address)
    assert said(answer, 2).startswith(f"--slurm-url: '{address}' contains a port, which ssh takes as an option")
    assert f"`--slurm-url {host} --ssh-option=-p --ssh-option=22`" in answer.err


def test_a_script_outside_the_project(user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    outside = user.home / "outside.py"
    outside.write_text("print(1)\n")
    for words in (["../outside.py"], ["python", "../outside.py"]):
        assert said(user.quick("run", *words), 2).startswith("'../outside.py' is outside the project '")
    assert user.contents() == []
    assert warnings(user, str(outside)) == []
    assert warnings(user, "--no-snapshot", "../outside.py") == []
    (user.home / "config").mkdir()
    (user.home / "config" / "contexts.yaml").write_text(CONTEXTS)
    monkeypatch.setenv("YURT_CONFIG_HOME", str(user.home / "config"))
    kept.save(NOWHERE, msgspec.structs.replace(FACTS, probed_at=time.time()))
    assert warnings(user, "--context", "big", str(outside)) == [
        f"'{outside}' is outside the project and is not uploaded; the run uses the file of that name on the site"
    ]


def test_an_ignored_file_that_the_command_names(user: User) -> None:
    (user.project / "data").mkdir()
    (user.project / "data" / "x.csv").write_text("1\n")
    (user.project / "kept.csv").write_text("1\n")
    (user.project / ".gitignore").write_text("data/\n")
    why = "is ignored, so the run does not get it; upload what .gitignore ignores with"
    sentence = f"'data/x.csv' {why} `--include 'data/x.csv'`"
    assert warnings(user, "train.py", "data/x.csv", "kept.csv") == [sentence]
    assert warnings(user, "train.py", "--", "--data=./data/x.csv") == [sentence]
    assert warnings(user, "--include", "data/x.csv", "train.py", "data/x.csv") == []
    assert warnings(user, "--no-snapshot", "train.py", "data/x.csv") == []
    assert warnings(user, "train.py", "--out", "data") == [f"'data' {why} `--include 'data/**'`"]
    assert warnings(user, "--include", "data/**", "train.py", "--out", "data") == []
    (user.project / "yurt.yaml").write_text("writable: [data]\n")
    assert warnings(user, "train.py", "--out", "data") == []


def test_ignored_data_that_the_command_names(user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    """A large file, or a folder, is offered as `yurt data put`; on this machine it is there already."""
    (user.project / "sets").mkdir()
    (user.project / "sets" / "small").write_text("1\n")
    with (user.project / "sets" / "it's large").open("wb") as file:
        file.truncate(20_000_000)
    (user.project / ".gitignore").write_text("sets/\n")
    (user.home / "config").mkdir()
    (user.home / "config" / "contexts.yaml").write_text(CONTEXTS)
    monkeypatch.setenv("YURT_CONFIG_HOME", str(user.home / "config"))
    kept.save(NOWHERE, msgspec.structs.replace(FACTS, probed_at=time.time()))
    (folder,) = warnings(user, "--context", "big", "train.py", "sets")
    assert "`yurt data put sets big:scratch:sets`" in folder and "`--include 'sets/**'`" in folder
    (large,) = warnings(user, "--context", "big", "train.py", "sets/it's large")
    assert """`yurt data put 'sets/it'"'"'s large' 'big:scratch:it'"'"'s large'`""" in large
    (small,) = warnings(user, "--context", "big", "train.py", "sets/small")
    assert "yurt data" not in small
    (here,) = warnings(user, "train.py", "sets")
    assert "yurt data" not in here


def test_an_ignored_script(user: User) -> None:
    (user.project / ".yurtignore").write_text("train.py\n")
    assert warnings(user, "train.py") == [
        "'train.py' is ignored, so the run does not get it; upload what .gitignore ignores with `--include 'train.py'`"
    ]


@pytest.mark.parametrize(
    "words", [("run", "true"), ("logs", "-"), ("show", "-"), ("wait", "-"), ("fetch", "1nfj000-00000")]
)
def test_the_current_folder_was_removed(user: User, words: tuple[str, ...]) -> None:
    gone = user.home / "gone"
    script = f'mkdir "{gone}" && cd "{gone}" && rmdir "{gone}" && exec "$@"'
    environment = {**os.environ, **user.environment}
    done = subprocess.run(
        ["sh", "-c", script, "sh", YURT, *words], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2, done
    assert done.stderr.splitlines()[0] == "yurt: the current folder no longer exists"


def test_a_very_large_limit(user: User) -> None:
    assert user.quick("ps", "--limit", "9" * 20).code == 0
