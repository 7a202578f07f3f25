"""remove.sh: only the folders of the runs that are named are removed, in every shell; links and others stay."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from yurt.backends.shell import removal

SHELLS = ["dash", "bash --posix", *(["busybox sh"] if shutil.which("busybox") else [])]


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("shell", SHELLS)
def test_only_run_folders(tmp_path: Path, shell: str, full: bool) -> None:
    runs = tmp_path / "it's a * $base" / "projects" / "p-1" / "runs"
    for name, record in {"r1": "r1", "r2": "r2", "r3": "r3", "foreign": "other", "unnamed": "unnamed"}.items():
        (runs / name / "outputs").mkdir(parents=True)
        (runs / name / "outputs" / "file").write_text("x\n")
        (runs / name / "run.json").write_text(f'{{"id":"{record}"}}\n')
    (runs / "link").symlink_to("unnamed")
    (runs / ".going.r2").mkdir()  # left by a removal that was killed
    if full:
        (runs / ".going").write_text("in the way, as if no folder could be made")
    names = [str(runs / name) for name in ("r1", "foreign", "r2", "link", "gone", "r3")]
    found = [each.what for each in removal.read_survey(_call(shell, "survey", names), names)]
    assert found == ["there", "foreign", "there", "foreign", "gone", "there"]
    assert sorted(_call(shell, "remove", names).split()) == ["gone", "gone", "gone", "r1", "r2", "r3"]
    left = {"foreign", "link", "unnamed", *([".going"] if full else [])}
    assert {each.name for each in runs.iterdir()} == left
    assert (runs / "unnamed" / "outputs" / "file").exists() and (runs / "foreign" / "outputs" / "file").exists()
    assert _call(shell, "remove", names) == ""


def _call(shell: str, what: str, names: list[str]) -> str:
    argv = [*shell.split(), "-c", f'{removal.tools()}{what} "$@"', "sh", *names]
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout
