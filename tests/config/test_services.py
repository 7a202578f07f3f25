"""The services of a project: `services` in yurt.yaml and pyproject.toml."""

from __future__ import annotations

from pathlib import Path

import pytest

from yurt.config import experiment, precedence, project, services
from yurt.errors import UserError
from yurt.model.context import LOCAL
from yurt.services.commands import COMMANDS

YAML = """\
time: 1h
variables: {A: one, B: one}
services:
  app:
    command: python app.py --title "two words" --port {port}
    gpus: 1
    time: 4h
    env: {B: two}
  listed:
    command: [python, -m, http.server, "{port}"]
  plain: gradio-server --socket {socket}
  jupyter: {folder: $SCRATCH, mem: 4G}
  tensorboard:
  mlflow: {store: runs.db}
"""

TOML = """\
[tool.yurt]
time = "1h"

[tool.yurt.services]
plain = "gradio-server --socket {socket}"

[tool.yurt.services.app]
command = ["python", "app.py", "--port", "{port}", "--workers", 2]
gpus = 1
env = {B = "two"}

[tool.yurt.services.jupyter]
folder = "$SCRATCH"
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "paper").mkdir()
    monkeypatch.chdir(tmp_path / "paper")
    return tmp_path / "paper"


def found(folder: Path, text: str = YAML, file: str = "yurt.yaml") -> dict[str, services.NamedService]:
    (folder / file).write_text(text)
    here = project.find()
    assert here is not None
    return here.services


def test_yaml(folder: Path) -> None:
    known = found(folder)
    assert list(known) == ["app", "listed", "plain", "jupyter", "tensorboard", "mlflow"]
    app = known["app"]
    assert app.words == ["python", "app.py", "--title", "two words", "--port", "{port}"]
    assert app.settings == {"resources": {"gpu": 1}, "time": "4h", "variables": {"B": "two"}}
    assert {key: app.lines[key] for key in app.settings} == {"resources": 6, "time": 7, "variables": 8}
    assert known["listed"].words == ["python", "-m", "http.server", "{port}"]
    assert known["plain"].words == ["gradio-server", "--socket", "{socket}"]
    assert (known["jupyter"].place, known["jupyter"].settings) == ("$SCRATCH", {"resources": {"mem": "4G"}})
    assert (known["tensorboard"].place, known["mlflow"].place) == ("", "runs.db")


def test_toml(folder: Path) -> None:
    known = found(folder, TOML, "pyproject.toml")
    assert list(known) == ["plain", "app", "jupyter"]
    assert known["app"].words == ["python", "app.py", "--port", "{port}", "--workers", "2"]
    assert known["app"].settings == {"resources": {"gpu": 1}, "variables": {"B": "two"}}
    assert known["app"].lines["resources"] == 9
    assert known["jupyter"].place == "$SCRATCH"


def test_none(folder: Path) -> None:
    assert found(folder, "services:\n") == {} == found(folder, "time: 1h\n")


def test_settings_of_a_service_are_between_the_project_and_flags(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found(folder)
    plain = precedence.resolve(LOCAL)
    assert (plain["time"].value, plain["time"].source) == ("1h", "yurt.yaml:1")
    of_app = precedence.resolve(LOCAL, {"resources": {"cpu": "2"}}, "app")
    assert (of_app["time"].value, of_app["time"].source) == ("4h", "yurt.yaml:7")
    assert (of_app["variables"].value, of_app["variables"].source) == (
        {"A": "one", "B": "two"},
        "yurt.yaml:8, yurt.yaml:2",
    )
    assert of_app["resources"].value == {"gpu": 1, "cpu": 2}
    monkeypatch.setenv("YURT_TIME", "2h")
    assert precedence.resolve(LOCAL, {}, "app")["time"].value == "2h"
    assert precedence.resolve(LOCAL, {"time": "3h"}, "app")["time"].value == "3h"
    assert precedence.resolve(LOCAL, {}, "other")["variables"].value == {"A": "one", "B": "one"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("services: [a]\n", "1: services must be a mapping of names to services, not a list"),
        ("services: {app: }\n", "1: services.app.command is missing (example: "),
        ("services:\n  app: {time: 1h}\n", "2: services.app.command is missing"),
        ("services:\n  app: {command: }\n", "2: services.app.command is missing"),
        ("services:\n  app: ''\n", "2: services.app.command is missing"),
        ("services:\n  app: [a]\n", "2: services.app must be a command, or a mapping with it, not a list"),
        ("services:\n  app: python app.py\n", "2: services.app.command must say where to listen: with {port}, or"),
        ("services:\n  app: a {port} {socket}\n", "2: services.app.command contains both {port} and {socket}"),
        ("services:\n  app: a 'b {port}\n", "2: services.app.command cannot be split into words: no closing quot"),
        ("services:\n  app:\n    command: [a, {port}]\n", "3: services.app.command has a mapping among its words"),
        ("services:\n  app:\n    command: {a: b}\n", "3: services.app.command must be a text or a list of words, not"),
        ("services:\n  app:\n    comand: a {port}\n", "app.comand is not a key of a service; did you mean 'command'?"),
        ("services:\n  app:\n    command: a {port}\n    tiem: 1h\n", "4: services.app.tiem is not a key of a service"),
        ("services:\n  app:\n    command: a {port}\n    time: x\n", "4: services.app.time must be"),
        ("services:\n  app:\n    command: a {port}\n    name: x\n", "4: services.app.name is a setting of a project"),
        ("services:\n  app:\n    command: a {port}\n    dev_idle: 1h\n", "4: services.app.dev_idle is a setting of a"),
        ("services:\n  app:\n    command: a {port}\n    storage_dir: /x\n", "4: services.app.storage_dir is a key of"),
        (
            "services:\n  app:\n    command: a {port}\n    folder: /x\n",
            "4: services.app.folder is not a key of a servi",
        ),
        ("services:\n  list: a {port}\n", "2: services.list has the name of a command, `yurt serve list`; choose"),
        ("services:\n  'a b': a {port}\n", "2: services.a b is not a valid name: use letters"),
        ("services:\n  jupyter: python {port}\n", "2: services.jupyter.command is not possible: yurt knows how to"),
        ("services:\n  jupyter: [a]\n", "2: services.jupyter must be a mapping of settings, not a list"),
        ("services:\n  jupyter: {folder: [a]}\n", "2: services.jupyter.folder must be a path, not a list"),
        ("services:\n  jupyter: {logdir: a}\n", "2: services.jupyter.logdir is not a key of a service"),
        ("service: {app: a}\n", "1: service is not a key of a project; did you mean 'services'?"),
        ("services:\n  a: x {port}\n  a: y {port}\n", "services.a is set twice, in lines 2 and 3; keep one"),
    ],
)
def test_faults(folder: Path, text: str, message: str) -> None:
    with pytest.raises(UserError) as caught:
        found(folder, text)
    assert message in caught.value.message and caught.value.code == "config-invalid"


def test_every_fault_is_listed(folder: Path) -> None:
    with pytest.raises(UserError) as caught:
        found(folder, "tiem: 1h\nservices:\n  app:\n    time: x\n  run: a {port}\n")
    assert [line.split(":")[0].strip() for line in caught.value.message.splitlines()[1:]] == [
        *("line 1", "line 3", "line 4", "line 5")
    ]


def test_commands_cannot_be_names() -> None:
    assert {*services.RESERVED, *services.PLACES} == set(COMMANDS)


def test_experiment_with_services(folder: Path) -> None:
    file = folder / "yurt.yaml"
    file.write_text(YAML + "parameters: {lr: 0.1}\n")
    assert experiment.read(file).parameters == {"lr": 0.1}
    other = folder / "other.yaml"
    other.write_text(YAML)
    with pytest.raises(UserError, match="services is a project setting"):
        experiment.read(other)
