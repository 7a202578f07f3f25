"""What a service runs: options and variables that keep it private, and one sentence for what is missing."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from yurt.node.files import NodeError
from yurt.node.service import jupyter_lab, programs
from yurt.node.service.place import Place


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(str(tmp_path), -1)


def fake_python(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """Let `python` be a shell script, the only program on PATH."""
    python = folder / "bin" / "python"
    python.parent.mkdir()
    python.write_text(f"#!/bin/sh\n{script}\n")
    python.chmod(0o755)
    monkeypatch.setenv("PATH", str(python.parent))


@pytest.mark.parametrize(
    ("program", "title"), [("jupyter", "JupyterLab"), ("tensorboard", "TensorBoard"), ("mlflow", "MLflow")]
)
def test_a_missing_package_gets_one_sentence(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str, title: str
) -> None:
    fake_python(tmp_path, monkeypatch, "exit 1")
    with pytest.raises(NodeError) as found:
        programs.program({"program": program, "folder": str(tmp_path)}, place)
    assert str(found.value).startswith(f"{title} is not installed for {tmp_path}/bin/python: add the package ")
    assert "\n" not in str(found.value)


def test_no_python(place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NodeError, match="there is no Python on this node"):
        programs.program({"program": "jupyter"}, place)


@pytest.mark.parametrize("program", ["jupyter", "tensorboard", "mlflow"])
def test_a_missing_folder(place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str) -> None:
    fake_python(tmp_path, monkeypatch, "echo 4.0")
    with pytest.raises(NodeError, match="/nowhere does not exist"):
        programs.program({"program": program, "folder": "/nowhere"}, place)


def test_mlflow_listens_on_the_socket(place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_python(tmp_path, monkeypatch, "echo 3.17.2")
    found = programs.program({"program": "mlflow", "folder": str(tmp_path)}, place)
    assert found.argv[-4:] == ["--workers", "1", "--uvicorn-opts", f"--uds {tmp_path}/socket"]
    assert not found.listens_on_port
    own = dict.fromkeys(
        (
            "MLFLOW_HOST",
            "MLFLOW_GUNICORN_OPTS",
            "MLFLOW_SERVER_ALLOWED_HOSTS",
            "MLFLOW_STATIC_PREFIX",
            "UVICORN_HOST",
            "UVICORN_SSL_KEYFILE",
            "GUNICORN_CMD_ARGS",
        ),
        "x",
    )
    kept = {"PATH": "/bin", "MLFLOW_S3_ENDPOINT_URL": "http://s3"}
    set_ = {"MLFLOW_ALLOW_FILE_STORE": "true", "MLFLOW_DISABLE_TELEMETRY": "true"}
    assert found.environment({**own, **kept}) == {**kept, **set_}


def test_an_old_mlflow_gets_a_network_of_its_own(place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its gunicorn would listen on its port in addition to a socket."""
    fake_python(tmp_path, monkeypatch, "echo 2.22.0")
    found = programs.program({"program": "mlflow", "folder": str(tmp_path)}, place)
    assert found.listens_on_port and found.argv[-4:] == ["--host", "127.0.0.1", "--port", "{port}"]
    assert "use MLflow 3" in found.refusal and "--open-port" not in found.refusal


def test_the_words_of_a_command(place: Place) -> None:
    found = programs.program({"program": "command", "words": ["serve", "--at={socket}"]}, place)
    assert found.argv == ["serve", f"--at={place.socket}"] and not found.listens_on_port
    assert programs.program({"program": "command", "words": ["serve", "localhost:{port}"]}, place).listens_on_port


def test_a_folder_is_no_port(place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_python(tmp_path, monkeypatch, "exit 0")
    (tmp_path / "{port}").mkdir()
    found = programs.program({"program": "tensorboard", "folder": str(tmp_path / "{port}")}, place)
    assert not found.listens_on_port


def test_the_token_of_jupyter_is_no_argument_and_no_variable(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_python(tmp_path, monkeypatch, "exit 0")
    found = programs.program({"program": "jupyter"}, place)
    assert len(found.token) == 48
    shown = [*found.argv, *found.environment({"JUPYTER_TOKEN": "mine", "JUPYTER_PORT": "1"}).values()]
    assert not any(found.token in word for word in shown) and "mine" not in shown
    assert os.stat(found.variables["JUPYTER_RUNTIME_DIR"]).st_mode & 0o777 == 0o700


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (["/env/bin/python3.11", "-m", "ipykernel_launcher", "-f", "x"], ["ipykernel_launcher", "-f", "x"]),
        (["python", "-Xfrozen_modules=off", "-m", "bash_kernel", "-f", "x"], ["bash_kernel", "-f", "x"]),
        (["python", "-X", "frozen_modules=off", "-m", "ipykernel"], ["ipykernel"]),
        (["python", "kernel.py", "-m", "x"], None),
        (["R", "-m", "x"], None),
        (["julia", "-i", "kernel.jl", "x"], None),
        (["python"], None),
    ],
)
def test_kernels_of_python_are_started_without_ports(command: list[str], expected: list[str] | None) -> None:
    found = jupyter_lab.own_kernel(command)
    if expected is None:
        assert found == command
    else:
        at = found.index(jupyter_lab.KERNEL)
        assert found[:at] == command[: command.index("-m")] and found[at + 1 :] == expected
