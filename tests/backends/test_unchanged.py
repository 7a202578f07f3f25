"""unchanged.sh finds changed files without a word on standard error, also where SIGPIPE is ignored."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

import pytest

from yurt.backends import shell

SCRIPT = Path(shell.__file__).parent / "unchanged.sh"


@pytest.mark.parametrize("change", ["nothing", "file", "list"])
def test_nothing_on_standard_error(tmp_path: Path, change: str) -> None:
    folder, saved = tmp_path / "folder", tmp_path / "list"
    folder.mkdir()
    for number in range(700):  # more than a pipe holds
        (folder / f"{'x' * 120}{number}").touch()
    _sh('save_list "$1" "$2"', folder, saved)
    if change == "file":
        (folder / f"{'x' * 120}7").write_text("changed")
    elif change == "list":
        saved.write_bytes(b"other\0" + saved.read_bytes())
    done = _sh('is_unchanged "$1" "$2"', folder, saved)
    assert (done.returncode, done.stderr) == (int(change != "nothing"), b"")


def _sh(command: str, *words: Path) -> subprocess.CompletedProcess[bytes]:
    before = signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    try:
        line = f'. "$0"; {command}'
        return subprocess.run(
            ["sh", "-c", line, SCRIPT, *words], capture_output=True, check=False, restore_signals=False
        )
    finally:
        signal.signal(signal.SIGPIPE, before)
