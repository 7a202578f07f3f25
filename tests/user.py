"""A user's machine for tests: private folders, a project with one script, and ways to call yurt."""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import subprocess
import tempfile
import threading
from pathlib import Path
from typing import Any, Self

import pexpect
import pytest

from tests.calls import YURT, Called, call, note


def end_masters(folder: Path) -> None:
    """Close the ssh connections whose sockets are in a folder, and remove the folder."""
    for socket in folder.iterdir() if folder.exists() else ():
        if socket.is_socket():
            subprocess.run(["ssh", "-S", str(socket), "-O", "exit", "x"], capture_output=True, check=False)
    shutil.rmtree(folder, ignore_errors=True)


class User:
    """A user with a configuration, an index and a project with one script.

    On exit, the context manager creates the file `go` that local runs wait for, and closes ssh connections.
    """

    def __init__(self, home: Path) -> None:
        home.mkdir(parents=True, exist_ok=True)
        self.home = home
        self.project = home / "proj"
        self.project.mkdir()
        (self.project / "train.py").write_text("print('trained')\n")
        self.runtime = Path(tempfile.mkdtemp(prefix="yurt-"))  # socket paths must be short
        self.environment = {
            "YURT_CONFIG_HOME": str(home / "config"),
            "YURT_DATA_HOME": str(home / "data"),
            "YURT_RUNTIME_DIR": str(self.runtime),
        }

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _kind: type[BaseException] | None, _error: BaseException | None, _at: object) -> None:
        for folder, names, _files in os.walk(self.home):  # not glob: a run that ends removes folders during the search
            for name in names if Path(folder).name in ("runs", "sweeps", "tasks") else ():
                with contextlib.suppress(OSError):  # a test may have changed the folder
                    Path(folder, name, "go").touch()
        end_masters(self.runtime)

    def __call__(self, *words: str, cwd: Path | str | None = None, **environment: str) -> Called:
        """Call yurt in the project, or in another folder."""
        return call(*words, environment={**self.environment, **environment}, cwd=Path(cwd or self.project))

    def quick(self, *words: str, **environment: str) -> Called:
        """Call yurt within this process, which is a hundred times faster."""
        from yurt.cli import main
        from yurt.clocks import clocks

        if threading.current_thread() is not threading.main_thread():
            return self(*words, **environment)  # threads share the environment
        streams = [io.TextIOWrapper(io.BytesIO(), "utf8", "backslashreplace", write_through=True) for _each in range(2)]
        with pytest.MonkeyPatch.context() as patch:
            for name, value in {**self.environment, **environment}.items():
                patch.setenv(name, value)
            patch.chdir(self.project)
            clocks.cache_clear()
            with contextlib.redirect_stdout(streams[0]), contextlib.redirect_stderr(streams[1]):
                code = main.run([*words])
        clocks.cache_clear()
        out, err = (stream.buffer.getvalue().decode() for stream in streams)
        return note(words, Called(code, out, err), {**self.environment, **environment})

    def spawn(self, *words: str, columns: int = 80, cwd: Path | None = None) -> pexpect.spawn:
        """Start yurt in a terminal."""
        environment = {**os.environ, **self.environment, "TERM": "xterm-256color"}
        where = {"env": environment, "cwd": cwd}
        return pexpect.spawn(YURT, [*words], **where, encoding="utf8", timeout=60, dimensions=(40, columns))

    def contents(self) -> list[object]:
        """Return every run in the index and every local run folder."""
        indexed: list[dict[str, Any]] = []
        if (self.home / "data" / "yurt.db").exists():
            indexed = self.quick("ps", "--cached", "--all", "--json").json["data"]
        return [*indexed, *sorted(self.home.glob("data/projects/*/runs/*"))]


def said(answer: Called, code: int) -> str:
    """Check that a call failed with one sentence and at most one hint; return the sentence."""
    assert answer.code == code, answer
    assert answer.out == "" and "Traceback" not in answer.err
    first, *hints = answer.err.splitlines()
    assert first.startswith("yurt: ") and len(hints) <= 1 and all(hint.startswith("  hint: ") for hint in hints)
    return first.removeprefix("yurt: ")
