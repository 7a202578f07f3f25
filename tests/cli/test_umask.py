"""With umask 0, everything that yurt creates is still private: on this machine, and on a site."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.calls import YURT
from tests.lab.conftest import Ssh
from tests.laptop import Laptop
from tests.user import User
from yurt.lab import Lab

THEIRS = ("/outputs/", "/checkpoints/", "/work/")
"""Folders of a run with files of the user, which follow the user's umask."""


def yurt(user: User, *words: str) -> None:
    """Call yurt with umask 0."""
    environment = {**os.environ, **user.environment}
    done = subprocess.run(
        [YURT, *words], env=environment, cwd=user.project, umask=0, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, (words, done)


def is_open(path: str, mode: int) -> bool:
    return bool(mode & 0o077) and not any(part in path for part in THEIRS)


def open_files(folder: Path) -> list[str]:
    """Return the files, folders and sockets below a folder that the group or others can access."""
    found = [folder]
    for above, folders, files in os.walk(folder):
        found += [Path(above, name) for name in (*folders, *files)]
    return [
        f"{each.lstat().st_mode & 0o777:o} {each}"
        for each in found
        if not each.is_symlink() and is_open(str(each), each.lstat().st_mode)
    ]


PROGRAM = """\
import os, yurt
before = os.umask(0)
os.umask(before)
with yurt.executor("local") as executor:
    assert list(executor.map(abs, [-1, -2])) == [1, 2]
made = yurt.run(["true"], context="local")
made.wait()
os.umask(after := os.umask(0))
assert after == before == 0, "the umask of the user's program changed"
open("own", "w").close()
"""


def test_files_on_this_machine(user: User) -> None:
    for number in range(40):
        (user.project / f"part{number}.py").write_text(f"{number}")
    yurt(user, "--context", "local", "run", "--wait", "sh", "-c", "umask; touch $YURT_OUTPUTS/own")
    (user.project / "train.py").write_text("import yurt; yurt.log(loss=1)")
    (user.project / ".yurtignore").write_text("none\n")
    yurt(user, "--context", "local", "run", "--wait", "train.py")
    yurt(user, "--context", "local", "run", "--wait", "--grid", "n=1,2", "--retries", "1", "sh", "-c", "true")
    yurt(user, "--context", "local", "run", "--wait", "--copy", "true")
    yurt(user, "context", "copy", "local", "second")
    yurt(user, "context", "use", "second")
    yurt(user, "ps")
    yurt(user, "logs", "@last-sweep")
    yurt(user, "fetch", "@last-sweep")
    assert "\n".join(open_files(user.home / "data")) == ""
    assert open_files(user.home / "config") == []
    assert open_files(user.runtime) == []


def test_files_of_the_api(user: User) -> None:
    environment = {**os.environ, **user.environment}
    subprocess.run([sys.executable, "-c", PROGRAM], env=environment, cwd=user.project, umask=0, check=True)
    assert (user.project / "own").stat().st_mode & 0o777 == 0o666
    assert "\n".join(open_files(user.home / "data")) == ""


def test_own_files_follow_the_umask(user: User) -> None:
    yurt(user, "--context", "local", "run", "--wait", "sh", "-c", "touch $YURT_OUTPUTS/own; mkdir $YURT_OUTPUTS/folder")
    yurt(user, "fetch", "-", "--to", "fetched")
    for folder in (user.project / "fetched", *user.home.glob("data/**/outputs")):
        if (folder / "own").exists():
            assert (folder / "own").stat().st_mode & 0o777 == 0o666
            assert (folder / "folder").stat().st_mode & 0o777 == 0o777


@pytest.fixture
def open_account(lab: Lab) -> Iterator[Ssh]:
    """An account on alpha and beta whose dotfiles set umask 0."""
    ssh = Ssh(lab)
    for site in ("alpha", "beta"):
        ssh(site, "cp -p .bashrc .bashrc.saved; sed -i '1i umask 0' .bashrc")
    yield ssh
    for site in ("alpha", "beta"):
        ssh(site, "mv .bashrc.saved .bashrc")


@pytest.mark.lab
@pytest.mark.parametrize("site", ["alpha", "beta"])
@pytest.mark.slow("beta")
def test_files_on_a_site(laptop: Laptop, open_account: Ssh, site: str) -> None:
    storage = f"/lustre/scratch/alice/open-{time.time()}"
    file = laptop.home / "config" / "contexts.yaml"
    text = file.read_text()
    assert "storage_dir: /lustre/scratch/alice\n" in text
    file.write_text(text.replace("storage_dir: /lustre/scratch/alice\n", f"storage_dir: {storage}\n"))
    (laptop.project / "train.py").write_text("import yurt; yurt.log(loss=1)")
    yurt(laptop, "--context", site, "run", "--wait", "train.py")
    (laptop.project / "train.py").write_text("import yurt; yurt.log(loss=2)")
    yurt(laptop, "--context", site, "run", "--wait", "--grid", "n=1,2", "--retries", "1", "sh", "-c", "umask")
    yurt(laptop, "ps")
    yurt(laptop, "logs", "@last-sweep")
    yurt(laptop, "fetch", "@last-sweep")
    listed = open_account(site, f"find {storage}/yurt ! -type l -printf '@%m %p\\n'").splitlines()
    rows = [line[1:].split(" ", 1) for line in listed if line.startswith("@")]
    assert len(rows) > 30
    assert [(mode, path) for mode, path in rows if is_open(path, int(mode, 8))] == []
    for folder in ("data", "config"):
        assert open_files(laptop.home / folder) == []
    assert open_files(laptop.runtime) == []
    open_account(site, f"chmod -R u+w {storage} && rm -rf {storage}")
