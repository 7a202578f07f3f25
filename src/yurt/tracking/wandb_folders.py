"""Folders of W&B that runs wrote without internet: which were uploaded, and the upload of one with `wandb sync`.

A site wrote these folders: wandb must find neither settings nor modules in them, and no link to a file of this machine.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

from yurt import private
from yurt.config import paths, secrets
from yurt.errors import RefusedError, UserError
from yurt.tracking import wandb_log

FILES = ("/wandb/offline-run-*/*.wandb", "/wandb/offline-run-*/*/**")
"""What to fetch of the results of a run. Not the files beside the log in which wandb notes what it has uploaded."""

KEY = "WANDB_API_KEY"


CUT = b"the file ends with an incomplete record"
"""What wandb prints of the log of a killed run after it has uploaded all of it that is complete."""


class Ledger:
    """Which folders were uploaded, in a file to which lines are only added. Only one process at a time may use it.

    A line is the run and the folder; a run alone means that all its folders were uploaded, or that it has none.
    """

    def __init__(self) -> None:
        self._file = home() / "synced"
        self._lines = set(self._file.read_text().splitlines()) if self._file.exists() else set()

    def done(self, run: str) -> bool:
        return run in self._lines

    def has(self, run: str, folder: str) -> bool:
        return f"{run} {folder}" in self._lines

    def count(self, run: str) -> int:
        """Return how many folders of a run were uploaded."""
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
    """Return the folder of this machine for W&B: the ledger, and copies of folders that are being uploaded."""
    return paths.data_home() / "wandb"


def copies(run: str) -> Path:
    """Return the folder for the copies of a run."""
    return home() / "copies" / run


def folders(run: str) -> list[Path]:
    """Return the copied folders of a run, in order of time. A link is none: it leads to other files of this machine."""
    found = {each.parent for each in copies(run).glob("wandb/offline-run-*/*.wandb")}
    return sorted(each for each in found if not (each.is_symlink() or each.parent.is_symlink()))


def forget(run: str) -> None:
    """Remove the copies of a run."""
    shutil.rmtree(copies(run), ignore_errors=True)


def program() -> list[str]:
    """Return the user's wandb: the program on PATH, or the module of this Python. RefusedError if there is none."""
    if found := shutil.which("wandb"):
        return [os.path.abspath(found)]  # noqa: PTH100  # links are kept: the environment of a program is beside it
    spec = find_spec("wandb")
    if spec is not None and spec.origin is not None:  # a folder of this name is not the module
        return [sys.executable, "-P", "-m", "wandb"]
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


def upload(
    command: list[str], folder: Path, env: dict[str, str], on_output: Callable[[bytes], None], *, from_site: bool = True
) -> str:
    """Give a folder to `wandb sync`; return why it was not uploaded, else an empty text.

    It may be repeated: W&B takes a folder with the same run id for the same run. If it comes `from_site`, its log must
    name no file of this machine.
    """
    _keep_own_files(folder)
    if from_site:
        for log in sorted(folder.glob("*.wandb")):
            if why := wandb_log.problem(log, folder / "files", staging()):
                return why
    lines: list[bytes] = []
    # wandb reads settings from ./wandb, and writes logs there.
    with tempfile.TemporaryDirectory(prefix="sync-", dir=home()) as empty:
        # PYTHONSAFEPATH: as -P, also for what wandb starts.
        apart = {**env, "WANDB_DIR": empty, "PYTHONSAFEPATH": "1"}
        with subprocess.Popen(
            [*command, "sync", str(folder)],
            env=apart,
            cwd=empty,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        ) as process:
            try:
                assert process.stdout is not None
                for line in process.stdout:
                    if words := re.sub(rb"\x1b\[[0-9;]*m", b"", line).strip():
                        lines = [*lines[-LINES:], words]
                    on_output(line)
            except BaseException:
                process.terminate()
                raise
    return problem(folder, process.returncode, lines)


LINES = 100
"""How many lines of wandb are kept to find out why it failed."""


def problem(folder: Path, code: int, lines: Sequence[bytes]) -> str:
    """Return why a folder was not uploaded, from what wandb printed; an empty text if it was.

    wandb ends with 0 although the server refused the folder; it writes NAME.wandb.synced only if it is complete there.
    """
    errors = [line.partition(b"ERROR ")[2] for line in lines if line.startswith(b"wandb: ERROR ")]
    last = lines[-1] if lines else b""
    if code == 0:
        logs = list(folder.glob("*.wandb"))
        if logs and all(Path(f"{each}.synced").exists() for each in logs):
            return ""
        if errors and all(CUT in error for error in errors):
            return ""
        if not errors and last.endswith(b"done."):  # before version 0.30: no mark if the run was killed
            return ""
    why = errors[-1] if errors and code == 0 else last
    return why.decode(errors="replace") or (f"exit code {code}" if code else "wandb did not confirm the upload")


def forget_uploads(folder: Path) -> None:
    """Let wandb upload a copy again from its beginning."""
    for mark in folder.glob("*.wandb.sync*"):
        mark.unlink()


def staging() -> Path:
    """Return the folder in which wandb keeps copies of the user's artifacts until they are uploaded."""
    data = os.environ.get("WANDB_DATA_DIR") or f"{os.environ.get('XDG_DATA_HOME') or '~/.local/share'}/wandb"
    return Path(data).expanduser().absolute() / "artifacts" / "staging"


def _keep_own_files(folder: Path) -> None:
    """Remove links out of a folder: wandb would upload the file of this machine that they point to. Also pipes."""
    inside = os.path.realpath(folder)
    for each in list(folder.rglob("*")):
        leads_out = each.is_symlink() and not os.path.realpath(each).startswith(f"{inside}/")
        if leads_out or stat.S_IFMT(each.lstat().st_mode) not in (stat.S_IFREG, stat.S_IFDIR, stat.S_IFLNK):
            each.unlink()
