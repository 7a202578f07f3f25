"""PyTorch is matched to the driver of a site. PyTorch's own index is not reachable in tests: uv's arguments are."""

from __future__ import annotations

from pathlib import Path

import pytest

from yurt.envs import resolve, uv_program, wheels
from yurt.envs.declared import named
from yurt.envs.indexes import Settings
from yurt.envs.lock import Lock
from yurt.envs.of_runs import prepare as cuda
from yurt.envs.target import Target
from yurt.errors import UserError

NEW = Lock("nvidia-cuda-runtime==13.2.86\ntorch==2.15.0\n")
OLDER = Lock("nvidia-cuda-runtime-cu12==12.8.90\ntorch==2.9.0\n")
TARGET = Target("3.11.2", "x86_64", "glibc 2.36")


@pytest.mark.parametrize(
    ("lock", "driver", "too_new"),
    [
        (NEW, "13.0", False),
        (NEW, "12.8", True),
        (OLDER, "12.2", False),
        (OLDER, "11.4", True),
        (OLDER, "", False),
        (Lock("nvidia-cuda-runtime==13.2.86\ncupy==14\n"), "12.8", False),
        (Lock("torch==2.15.0+cpu\n"), "11.4", False),
    ],
)
def test_which_pytorch_runs_with_a_driver(lock: Lock, driver: str, too_new: bool) -> None:
    assert cuda.is_too_new(lock, driver) == too_new


def test_the_builds_for_a_driver() -> None:
    drivers = ("12.9", "12.8", "12.4", "12", "11.8", "10.2")
    assert [cuda.backend(each) for each in drivers] == ["cu128", "cu128", "cu126", "cu126", "cu118", ""]


def test_uv_gets_the_builds(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commands: list[list[str]] = []

    def run(arguments: list[str], **_: object) -> uv_program.Done:
        commands.append(list(arguments))
        return uv_program.Done(0, "torch==2.9.0+cu126\n", "")

    monkeypatch.setattr(uv_program, "run", run)
    (project / "requirements.txt").write_text("torch\n")
    lock = resolve.resolve(named(project, "requirements.txt"), TARGET, torch="cu126")
    assert lock.torch_backend == "cu126" and [each.version for each in lock.packages] == ["2.9.0+cu126"]
    monkeypatch.setattr(uv_program, "run", lambda arguments, **_: run(arguments) and uv_program.Done(2, "", "no"))
    with pytest.raises(UserError):
        wheels.choose(lock, TARGET, Settings(), project)
    for command in commands:
        assert command[command.index("--torch-backend") + 1] == "cu126"
