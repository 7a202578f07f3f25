"""Folders of W&B that runs wrote without internet: which were handed to `wandb sync`, and handing one over."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

from yurt import private
from yurt.config import paths, secrets
from yurt.errors import RefusedError, UserError

FOLDERS = "/wandb/offline-run-*/**"
"""What to fetch of the results of a run."""

KEY = "WANDB_API_KEY"


class Ledger:
    """Which folders were handed over, in a file to which lines are only added. Only one process at a time may use it.

    A line is the run and the folder; a run alone means that all its folders were handed over, or that it has none.
    """

    def __init__(self) -> None:
        self._file = home() / "synced"
        self._lines = set(self._file.read_text().splitlines()) if self._file.exists() else set()

    def done(self, run: str) -> bool:
        return run in self._lines

    def has(self, run: str, folder: str) -> bool:
        return f"{run} {folder}" in self._lines

    def count(self, run: str) -> int:
        """Return how many folders of a run were handed over."""
        return sum(line.startswith(f"{run} ") for line in self._lines)

    def add(self, run: str, folder: str = "") -> None:
        """Record a folder, or a run; when this returns, it is on the disk."""
        line = f"{run} {folder}".strip()
        self._lines.add(line)
        paths.make_private(self._file.parent)
        with open(self._file, "ab", opener=private.opener) as file:
            file.write(f"{line}\n".encode())
            file.flush()
            os.fsync(file.fileno())


def home() -> Path:
    """Return the folder of this machine for W&B: the ledger, and copies of folders that are being handed over."""
    return paths.data_home() / "wandb"


def copies(run: str) -> Path:
    """Return the folder for the copies of a run."""
    return home() / "copies" / run


def folders(run: str) -> list[Path]:
    """Return the copied folders of a run, in order of time."""
    return sorted(each.parent for each in copies(run).glob("wandb/offline-run-*/*.wandb"))


def forget(run: str) -> None:
    """Remove the copies of a run."""
    shutil.rmtree(copies(run), ignore_errors=True)


def program() -> list[str]:
    """Return the user's wandb: the program on PATH, or the module of this Python. RefusedError if there is none."""
    if found := shutil.which("wandb"):
        return [found]
    if find_spec("wandb") is not None:
        return [sys.executable, "-m", "wandb"]
    raise RefusedError("wandb is not installed", code="program-missing", hint="install it with `pip install wandb`")


def environment() -> dict[str, str]:
    """Return the environment for `wandb sync`: the user's own, and the key from yurt's secrets if it has none."""
    found = {name: value for name, value in os.environ.items() if name not in ("WANDB_MODE", "WANDB_DIR")}
    if KEY not in found:
        with suppress(RefusedError, UserError, UnicodeDecodeError):  # wandb may have its own login
            key = secrets.read(KEY)
            if key is not None:
                found[KEY] = key.decode()
    return found


def hand_over(command: list[str], folder: Path, env: dict[str, str], on_output: Callable[[bytes], None]) -> str:
    """Give a folder to `wandb sync`; return its last line if it failed, else an empty text.

    It may be repeated: W&B takes a folder with the same run id for the same run.
    """
    last = b""
    with subprocess.Popen(
        [*command, "sync", str(folder)],
        env=env,
        cwd=folder.parents[1],  # wandb may write logs of its own
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    ) as process:
        try:
            assert process.stdout is not None
            for line in process.stdout:
                last = line if line.strip() else last
                on_output(line)
        except BaseException:
            process.terminate()
            raise
    if process.returncode == 0:
        return ""
    return last.decode(errors="replace").strip() or f"exit code {process.returncode}"
