"""Code arrives whole or not at all, cheaply, on this machine and on both clusters, also without git there."""

from __future__ import annotations

import itertools
import os
import shutil
import stat
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.hosts.conftest import end_masters, site
from tests.snapshot.test_take import AWKWARD
from yurt.errors import RefusedError, UnreachableError
from yurt.hosts import Host, LocalHost
from yurt.lab import Lab
from yurt.lab.relay import Rules
from yurt.snapshot import send, take

count = itertools.count()


@pytest.fixture(autouse=True)
def runtime(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    folder = Path(f"/tmp/ys-{os.getpid()}-{next(count)}")
    monkeypatch.setenv("YURT_RUNTIME_DIR", str(folder))
    yield
    if folder.exists():
        end_masters(folder)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    root.mkdir()
    for name in AWKWARD:
        path = Path(os.fsdecode(os.path.join(os.fsencode(root), name)))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"content of " + name)
    (root / "run.sh").write_text("#!/bin/sh\n")
    (root / "run.sh").chmod(0o755)
    (root / "link").symlink_to("a/b")
    (root / "crlf").write_bytes(b"a\r\nb\r\n")
    (root / ".gitattributes").write_text("* text eol=crlf\n")
    (root / "big").write_bytes(os.urandom(200_000))
    return root


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "store.git"


def listing(host: Host, folder: str) -> bytes:
    """Every path below a folder with its kind and its content."""
    script = 'cd "$1" && find . -mindepth 1 -type f -exec sha1sum -z {} + -o -type l -printf "%p -> %l\\0" | sort -z'
    return host.run(script, folder).out


def assert_arrived(host: Host, project: Path, folder: str, tree: str) -> None:
    assert listing(host, f"{folder}/snapshots/{tree}") == listing(LocalHost(), str(project))
    assert host.run('find "$1/snapshots/$2" ! -type l -perm /222 | wc -l', folder, tree).text.strip() == "0"
    assert host.run('ls -A "$1/incoming"', folder).out == b"", "nothing is left half-done"


class Sending:
    """The suite for each host; `place` is (host, an empty folder there)."""

    def test_first_unchanged_edited(self, place: tuple[Host, str], project: Path, store: Path) -> None:
        host, folder = place
        first = take(project, store)
        assert send.send(host, first, folder) > 200_000
        assert_arrived(host, project, folder, first.tree)
        assert host.run('test -x "$1/snapshots/$2/run.sh"', folder, first.tree).code == 0
        assert send.send(host, first, folder) == 0
        (project / "plain").write_text("edited")
        (project / "a" / "b" / "c").unlink()
        (project / "a" / "b").rmdir()
        (project / "a" / "b").write_text("a file where a folder was")
        (project / "con").unlink()
        (project / "con").mkdir()
        (project / "con" / "x").write_text("and the other way round")
        second = take(project, store)
        assert 0 < send.send(host, second, folder) < 3000, "only what changed travels"
        assert_arrived(host, project, folder, second.tree)
        same = host.run('stat -c %i "$1/snapshots/$2/big" "$1/snapshots/$3/big"', folder, first.tree, second.tree)
        assert len(set(same.text.split())) == 1, "unchanged files are one file"

    def test_two_at_once(self, place: tuple[Host, str], project: Path, store: Path) -> None:
        host, folder = place
        snapshot = take(project, store)
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda _: send.send(host, snapshot, folder), range(4)))
        assert_arrived(host, project, folder, snapshot.tree)

    def test_another_laptop_goes_on_from_there(self, place: tuple[Host, str], project: Path, store: Path) -> None:
        host, folder = place
        send.send(host, take(project, store), folder)
        (project / "plain").write_text("from elsewhere")
        other = take(project, store.with_name("other.git"))
        send.send(host, other, folder)
        assert_arrived(host, project, folder, other.tree)

    def test_without_git_there(
        self, place: tuple[Host, str], project: Path, store: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        host, folder = place
        monkeypatch.setattr(send, "ASK", send.ASK.replace("command -v git", "command -v no-such-git"))
        snapshot = take(project, store)
        host.run('mkdir -p "$1"', folder)
        send.send(host, snapshot, folder)
        assert_arrived(host, project, folder, snapshot.tree)


class TestHere(Sending):
    @pytest.fixture
    def place(self, tmp_path: Path) -> Iterator[tuple[Host, str]]:
        yield LocalHost(), str(tmp_path / "far side" / "yurt")
        subprocess.run(["chmod", "-R", "u+w", str(tmp_path)], check=True)


@pytest.mark.lab
@pytest.mark.parametrize("cluster", ["alpha", "beta"])
class TestOnClusters(Sending):
    @pytest.fixture
    def place(self, lab: Lab, cluster: str) -> Iterator[tuple[Host, str]]:
        host = site(lab, cluster)
        folder = f"/lustre/scratch/alice/send {next(count)}"
        yield host, folder
        host.run('chmod -R u+w "$1"; rm -rf "$1"', folder)


def test_killed_at_any_moment(tmp_path: Path, project: Path, store: Path) -> None:
    """The receiver is killed with its whole process group after some steps; the next one completes it."""
    snapshot = take(project, store)
    folder = tmp_path / "far"
    content = send.pack(snapshot)
    for steps in range(1, 40, 3):
        # A shell that dies when its Nth command begins.
        trap = f"n=0; trap 'n=$((n+1)); [ $n -lt {steps} ] || kill -9 0' DEBUG\n"
        script = f"set -- {folder} {snapshot.tree} '' {len(content)}\n{trap}{send.receiver()}"
        (tmp_path / "script").write_text(script)
        subprocess.run(
            ["setsid", "-w", "bash", str(tmp_path / "script")], input=content, capture_output=True, check=False
        )
        done = folder / "snapshots" / snapshot.tree
        if done.exists():
            assert listing(LocalHost(), str(done)) == listing(LocalHost(), str(project)), steps
            subprocess.run(["chmod", "-R", "u+w", str(folder)], check=True)
            shutil.rmtree(folder)
    send.send(LocalHost(), snapshot, str(folder))
    assert listing(LocalHost(), str(folder / "snapshots" / snapshot.tree)) == listing(LocalHost(), str(project))
    subprocess.run(["chmod", "-R", "u+w", str(tmp_path)], check=True)


@pytest.mark.lab
def test_link_cut_on_the_way(lab: Lab, project: Path, store: Path) -> None:
    snapshot = take(project, store)
    folder = f"/lustre/scratch/alice/cut {next(count)}"
    try:
        for cut_at in (5_000, 60_000, 180_000):
            lab.faults.delay("alpha", Rules(cut_at=cut_at, direction="up", connections=1))
            host = site(lab, "alpha")
            with pytest.raises(UnreachableError):
                send.send(host, snapshot, folder)
            assert host.run('ls "$1/snapshots" 2> /dev/null', folder).out == b""
            end_masters(host.master.socket.parent)
    finally:
        lab.faults.heal("alpha")
    host = site(lab, "alpha")
    send.send(host, snapshot, folder)
    assert_arrived(host, project, folder, snapshot.tree)
    host.run('chmod -R u+w "$1"; rm -rf "$1"', folder)


@pytest.mark.lab
def test_full_disk(lab: Lab, project: Path, store: Path) -> None:
    host = site(lab, "alpha")
    folder = "/lustre/project/alice/full"
    lab.faults.full("alpha:project")
    try:
        with pytest.raises(RefusedError) as caught:
            send.send(host, take(project, store), folder)
        assert caught.value.code == "disk-full"
    finally:
        lab.faults.free("alpha:project")
    send.send(host, take(project, store), folder)
    host.run('chmod -R u+w "$1"; rm -rf "$1"', folder)


def test_checkouts_are_private(tmp_path: Path, project: Path, store: Path) -> None:
    snapshot = take(project, store)
    send.send(LocalHost(), snapshot, str(tmp_path / "far"))
    assert stat.S_IMODE((tmp_path / "far" / "snapshots" / snapshot.tree).stat().st_mode) == 0o500
    subprocess.run(["chmod", "-R", "u+w", str(tmp_path)], check=True)
