"""Which job.sh starts a command inside a run: that of the run, or of the task's sweep."""

from __future__ import annotations

import pytest

from yurt.backends.shell.exec import ShellExec
from yurt.model.run import Placement, Resources
from yurt.transport.local import LocalHost

SWEEP = "/data/tasks/yurt/projects/p-1/sweeps/s1nfjkdg-9k3rq"
RUN = "/data/tasks/yurt/projects/p-1/runs/1nfjkdg-9k3rq"


@pytest.mark.parametrize(
    ("folder", "started"),
    [
        (RUN, f"exec sh {RUN}/job.sh inside"),
        (f"{SWEEP}/tasks/3", f"exec sh {SWEEP}/job.sh inside"),
    ],
)
def test_below_a_folder_called_tasks(folder: str, started: str, monkeypatch: pytest.MonkeyPatch) -> None:
    commands: list[str] = []

    def noted(_self: ShellExec, command: str, _folder: str) -> int:
        commands.append(command)
        return 0

    monkeypatch.setattr(ShellExec, "_command", noted)
    placement = Placement(context="local", context_type="local", folder=folder, resources=Resources())
    assert ShellExec(LocalHost()).run(placement, ["id"], terminal=False) == 0
    (command,) = commands
    assert command.endswith(started) and ("YURT_TASK_INDEX=3 " in command) == folder.endswith("/tasks/3")
