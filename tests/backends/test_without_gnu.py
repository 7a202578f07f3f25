"""Local runs without the tools of GNU and without /proc, as on macOS; and the contract with the tools of busybox."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import other_tools
from tests.backends.test_contract import backend, home, plan  # noqa: F401 - fixtures
from tests.calls import YURT
from tests.user import User
from yurt.backends.local import process
from yurt.model import layout
from yurt.testing.shell_contract import ShellContract
from yurt.testing.waiting import eventually

HIDE_PROC = 'mount --bind /proc "$REAL_PROC" && mount -t tmpfs none /proc && exec "$@"'
"""In a mount namespace of its own: /proc is empty, and the test's `ps` reads it elsewhere."""

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to mount")


class Mac:
    """Calls yurt on a system with BSD's tools and without /proc."""

    def __init__(self, user: User, folder: Path) -> None:
        self.user, self.proc = user, folder / "proc"
        self.proc.mkdir()
        self.environment = {
            **os.environ,
            **user.environment,
            "REAL_PROC": str(self.proc),
        }
        self.tools = other_tools.bsd(folder / "bin")

    def __call__(self, *words: str) -> str:
        inside = ["env", f"PATH={self.tools}", YURT, *words]
        argv = ["unshare", "-m", "sh", "-c", HIDE_PROC, "sh", *inside]
        done = subprocess.run(
            argv,
            cwd=self.user.project,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert "illegal option" not in done.stderr and "not found" not in done.stderr, done.stderr
        assert done.returncode == 0, done
        return done.stdout + done.stderr


def assert_is_start_time(yurt: Mac, line: str) -> None:
    """Check that job.sh recorded the start time of a process as the waiter would: it is compared with that."""
    pid, recorded = line.split()
    environment = {**os.environ, "REAL_PROC": "/proc", "LC_ALL": "C", "TZ": "UTC0"}
    argv = [str(yurt.tools / "ps"), "-o", "stat=", "-o", "lstart=", "-p", pid]
    printed = subprocess.run(argv, env=environment, capture_output=True, text=True, check=True).stdout
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(process, "_output", lambda *_argv: printed)
        assert process._born_by_ps(int(pid)) == int(recorded)


def test_a_zombie_and_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    for printed in ("", "Z    Mon Nov 16 21:31:27 2026\n"):
        monkeypatch.setattr(process, "_output", lambda *_argv, printed=printed: printed)
        assert process._born_by_ps(1) is None


@needs_root
def test_runs_on_a_system_like_macos(user: User, tmp_path: Path) -> None:
    yurt = Mac(user, tmp_path)
    (user.project / "job.sh").write_text('echo "a is $YURT_PARAM_A"; echo made > "$YURT_OUTPUTS/file"\n')
    assert "completed" in yurt("run", "--wait", "--param", "a=1", "sh", "job.sh")
    assert yurt("logs", "-") == "a is 1\n"
    assert "1 file" in yurt("fetch", "-")
    assert "completed" in yurt("run", "--wait", "--grid", "a=1,2", "sh", "job.sh")
    assert "0 | a is 1" in yurt("logs", "@last-sweep")
    yurt("run", "--name", "long", "sh", "-c", 'echo $$; until [ -e "$YURT_RUN_DIR/go" ]; do sleep 0.1; done')
    eventually(lambda: re.fullmatch(r"\d+\n", yurt("logs", "long")))
    pid = int(yurt("logs", "long"))
    *_earlier, recorded = sorted((user.home / "data").glob(f"projects/*/runs/*/{layout.CHILD}1"))
    assert_is_start_time(yurt, recorded.read_text())
    yurt("cancel", "long")
    eventually(lambda: "cancelled" in yurt("ps"))
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


@pytest.mark.slow
class TestLocalWithBusybox(ShellContract):
    name = "local"

    @pytest.fixture(scope="class", autouse=True)
    def busybox(self, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
        folder = other_tools.links(tmp_path_factory.mktemp("tools") / "bin", "busybox")
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("PATH", str(folder))
            yield
