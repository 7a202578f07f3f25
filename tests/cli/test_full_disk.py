"""run --follow and --wait while the disk of this machine is full: one sentence, and nothing submitted twice."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.calls import YURT
from tests.user import User

SIZE = 12 << 20


@pytest.fixture
def user(tmp_path: Path) -> Iterator[User]:
    """A user whose index is on a small disk, and whose local runs are on another one."""
    with User(tmp_path / "user") as made:
        data = Path(made.environment["YURT_DATA_HOME"])
        data.mkdir()
        config = Path(made.environment["YURT_CONFIG_HOME"])
        config.mkdir()
        (config / "contexts.yaml").write_text(
            f"contexts:\n  here:\n    type: local\n    storage_dir: {tmp_path / 'runs'}\n"
        )
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={SIZE},mode=700", "none", str(data)], check=True)
        try:
            yield made
        finally:
            subprocess.run(["umount", "--lazy", str(data)], check=True)


def filled(user: User, left: int) -> Path:
    """Fill the disk of the index except for some KB, and return the file that does."""
    fill = Path(user.environment["YURT_DATA_HOME"]) / "fill"
    with fill.open("wb") as file:
        free = os.statvfs(fill.parent)
        os.posix_fallocate(file.fileno(), 0, max(1, free.f_bavail * free.f_frsize - (left << 10)))
    return fill


def ran_once_each(user: User, said: Path) -> None:
    runs = [each["id"] for each in user("ps", "--json").json["data"]]
    assert user("wait", *runs).code == 0
    assert len(said.read_text().splitlines()) == len(runs)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to mount a small disk")
@pytest.mark.parametrize("option", ["--follow", "--wait"])
def test_a_disk_that_is_full_or_almost(user: User, tmp_path: Path, option: str) -> None:
    said = tmp_path / "said"
    (user.project / "train.py").write_text(f"open({str(said)!r}, 'a').write('once\\n')\n")
    assert user("--context", "here", "run", "--wait", "train.py").code == 0
    stopped = 0
    for left in (0, 40, 60, 80, 100):
        fill = filled(user, left)
        done = user("--context", "here", "run", option, "train.py")
        fill.unlink()
        if done.code:
            stopped += 1
            assert (done.code, "the disk of this machine is full" in done.err) == (5, True), done
    assert stopped, "otherwise the disk was never full"
    ran_once_each(user, said)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to mount a small disk")
@pytest.mark.parametrize("option", ["--follow", "--wait"])
def test_a_disk_that_fills_up_during_the_wait(user: User, tmp_path: Path, option: str) -> None:
    said, go = tmp_path / "said", tmp_path / "go"
    (user.project / "train.py").write_text(
        "import os, time\n"
        f"while not os.path.exists({str(go)!r}): time.sleep(0.05)\n"
        f"open({str(said)!r}, 'a').write('once\\n')\n"
    )
    process = subprocess.Popen(
        [YURT, "--context", "here", "run", option, "train.py"],
        cwd=user.project,
        env={**os.environ, **user.environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    line = process.stdout.readline()
    fill = filled(user, 0)
    go.touch()
    _out, err = process.communicate(timeout=60)
    fill.unlink()
    assert (process.returncode, "the disk of this machine is full" in err) == (5, True), err
    assert f"yurt wait {line.split()[0]}" in err
    ran_once_each(user, said)
