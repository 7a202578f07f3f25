"""A job that waits for a home sync and for its environment: the later of the two releases it, in any order.

The scripts are real; Slurm is a folder with one file for each field of one job. At each call of a Slurm command the
other side may run as a whole, so every order of their steps is tried.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from yurt.backends import scripts as backend_scripts
from yurt.homes import scripts
from yurt.model import layout

SQUEUE = """\
#!/bin/sh
. "$SITE/between"
for format; do :; done
held=JobHeldUser priority=0
[ ! -e "$SITE/released" ] || held=None priority=9
comment=$(cat "$SITE/comment")
echo HEADER
case $format in
  '%F|%V|%r|%Q|%k') echo "7|2026-01-01T00:00:00|$held|$priority|$comment" ;;
  '%F %k') echo "7 $comment" ;;
  %Z) echo "$SITE/run" ;;
esac
"""

SCONTROL = """\
#!/bin/sh
. "$SITE/between"
case $1 in
  update) printf '%s\\n' "${3#comment=}" > "$SITE/comment" ;;
  release) : > "$SITE/released" ;;
esac
"""

BETWEEN = """\
count=$(cat "$SITE/count")
echo $((count + 1)) > "$SITE/count"
if [ "$count" = "$OTHER_AT" ]; then
  : > "$SITE/both"
  OTHER_AT=never sh "$SITE/other" > /dev/null
fi
"""


class Site:
    """A Slurm with one held job of yurt, whose environment is in `env`."""

    def __init__(self, folder: Path, comment: str = "home_sync yurt:x", *, env: bool = True) -> None:
        self.folder = folder
        for name in ("bin", "run", "env", "home/.unison/yurt"):
            (folder / name).mkdir(parents=True)
        for name, text in (("squeue", SQUEUE), ("scontrol", SCONTROL)):
            (folder / "bin" / name).write_text(text)
            (folder / "bin" / name).chmod(0o755)
        (folder / "between").write_text(BETWEEN)
        (folder / "comment").write_text(f"{comment}\n")
        self.list = folder / "home/.unison/yurt/waiting.t1"
        self.list.write_text("7 2026-01-01T00:00:00\n")
        if env:
            (folder / "run" / layout.ENV_WAIT).write_text(f"{folder}/env\n")
            (folder / "env/wait.7").write_text("yes")

    @property
    def sync(self) -> str:
        return f'{scripts.gate()}home_release "{self.list}"\n'

    @property
    def build(self) -> str:
        text = backend_scripts.plain_slurm() + backend_scripts.text("env_state.sh", "job")
        return f'{text}release_built "{self.folder}/env" 7\n'

    def run(self, script: str, other: str = "", at: int = -1, *, shell: str = "dash") -> str:
        (self.folder / "count").write_text("0\n")
        (self.folder / "other").write_text(other)
        variables = {"SITE": str(self.folder), "OTHER_AT": str(at), "HOME": str(self.folder / "home")}
        done = subprocess.run(
            [*shell.split(), "-c", f"export MAIN=$$\n{script}"],
            env={**os.environ, **variables, "PATH": f"{self.folder}/bin:{os.environ['PATH']}", "UNISON": ""},
            capture_output=True,
            text=True,
            check=False,
        )
        assert not done.stderr
        return done.stdout

    @property
    def released(self) -> bool:
        return (self.folder / "released").exists()

    @property
    def calls(self) -> int:
        return int((self.folder / "count").read_text())

    @property
    def comment(self) -> str:
        return (self.folder / "comment").read_text().strip()


@pytest.mark.parametrize("first", ["sync", "build"])
def test_the_second_one_releases(tmp_path: Path, first: str) -> None:
    site = Site(tmp_path)
    order = [site.sync, site.build] if first == "sync" else [site.build, site.sync]
    said = site.run(order[0])
    assert not site.released
    assert site.comment == ("home_synced yurt:x" if first == "sync" else "home_sync yurt:x")
    assert said == ("left 7 it waits for its environment\n" if first == "sync" else "")
    site.run(order[1])
    assert (
        site.released
        and not (tmp_path / "env/wait.7").exists()
        and not list((tmp_path / "home/.unison/yurt").iterdir())
    )


@pytest.mark.parametrize("outer", ["sync", "build"])
def test_one_runs_in_the_middle_of_the_other(tmp_path: Path, outer: str) -> None:
    at = 0
    while True:
        site = Site(tmp_path / str(at))
        whole, other = (site.sync, site.build) if outer == "sync" else (site.build, site.sync)
        site.run(whole, other, at)
        if not (site.folder / "both").exists():
            break
        assert site.released, f"{outer}, the other one at call {at}"
        at += 1
    assert at == len({"sync": ["list", "comment", "folder"], "build": ["look", "look again"]}[outer])


@pytest.mark.parametrize("shell", ["dash", "bash --posix", "busybox sh"])
def test_a_job_without_an_environment(tmp_path: Path, shell: str) -> None:
    if shutil.which(shell.split(maxsplit=1)[0]) is None:
        pytest.skip(f"needs the Debian package {shell.split(maxsplit=1)[0]}")
    site = Site(tmp_path, "home_sync", env=False)
    assert site.run(f"{scripts.gate()}home_waiting\n", shell=shell) == "7 2026-01-01T00:00:00\n"
    assert site.run(site.sync, shell=shell) == "released 7\n"
    assert site.comment == "home_synced"


@pytest.mark.parametrize("comment", ["", "home_syncing", "home_synced", "x home_sync", "yurt:x"])
def test_other_jobs_do_not_wait(tmp_path: Path, comment: str) -> None:
    site = Site(tmp_path, comment, env=False)
    assert site.run(f"{scripts.gate()}home_waiting\n") == ""
    assert not site.released


def test_a_job_of_another_submission_is_left(tmp_path: Path) -> None:
    """Slurm may give the id of the listed job to another one."""
    site = Site(tmp_path, env=False)
    site.list.write_text("7 2025-01-01T00:00:00\n")
    assert site.run(site.sync) == "left 7 it is no longer in the queue\n"
    assert not site.released


def test_a_job_without_a_sync_is_released_as_ever(tmp_path: Path) -> None:
    """Without the word in wait.JOB the builder does not read the queue."""
    site = Site(tmp_path, "yurt:x")
    (tmp_path / "env/wait.7").write_text("")
    site.run(site.build)
    assert site.released and site.calls == 1


def test_a_killed_sync_is_completed_by_the_next_one(tmp_path: Path) -> None:
    site = Site(tmp_path, env=False)
    site.run(site.sync, "kill -9 $MAIN\n", 2)  # before it releases the job
    assert not site.released and site.comment == "home_synced yurt:x"
    assert site.run(f"{scripts.gate()}home_waiting\n") == ""
    assert site.released and not list(site.list.parent.iterdir())
