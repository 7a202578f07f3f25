"""The first content of a workspace, from each kind of source; a failure leaves nothing."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.node.dev.conftest import DevNodes
from yurt.node.dev import disk, sources
from yurt.node.dev.config import Source
from yurt.node.files import NodeError


def fill(tmp_path: Path, kind: str, value: str) -> Path:
    target = tmp_path / "target"
    target.mkdir()
    sources.fill(Source(kind, value), str(target), "desk", str(tmp_path / "run"))
    return target


def run(*words: str, cwd: Path) -> None:
    subprocess.run(words, cwd=cwd, check=True, capture_output=True)


@pytest.mark.parametrize("top", [".", "work", "desk", "scratch/alice/work"])
@pytest.mark.parametrize(
    ("ending", "option"), [(".tar.lz4", "lz4"), (".tar.zst", "zstd"), (".tar.gz", "gzip"), (".tar", "")]
)
def test_archives(tmp_path: Path, top: str, ending: str, option: str) -> None:
    """The workspace may be the only folder in the archive, also below the path that it had."""
    made = tmp_path / "made"
    (made / top / "sub").mkdir(parents=True)
    (made / top / "sub" / "a.txt").write_text("a")
    (made / top / "b.txt").write_text("b")
    archive = tmp_path / f"old{ending}"
    run("tar", "-c", *([f"--use-compress-program={option}"] if option else []), "-f", str(archive), top, cwd=made)
    target = fill(tmp_path, "archive", str(archive))
    assert sorted(str(each.relative_to(target)) for each in target.rglob("*")) == ["b.txt", "sub", "sub/a.txt"]


def test_a_damaged_archive(tmp_path: Path) -> None:
    (tmp_path / "a.tar.gz").write_bytes(b"not gzip")
    with pytest.raises(NodeError, match=r"cannot unpack .*a\.tar\.gz: (?!tar: Exiting)"):
        fill(tmp_path, "archive", str(tmp_path / "a.tar.gz"))


@pytest.mark.parametrize("damaged", [False, True])
def test_an_uploaded_archive_is_removed_after_use(dev: DevNodes, tmp_path: Path, damaged: bool) -> None:
    folder = tmp_path / "shared" / "workspaces" / ".from-default"
    folder.mkdir(parents=True)
    (tmp_path / "a").write_text("a")
    archive = folder / "own.tar"
    run("tar", "-cf", str(archive), "a", cwd=tmp_path)
    if damaged:
        archive.write_text("no archive")
    node = dev("n1", source={"kind": "archive", "value": str(archive), "uploaded": True})
    if damaged:
        assert "tar: " in node.why() and not node.workspace.exists() and not node.backups.exists()
    else:
        assert (node.ready().workspace / "a").read_text() == "a" and node.numbers() == [1]
    assert not folder.exists()


def test_a_folder(tmp_path: Path) -> None:
    made = tmp_path / "made"
    made.mkdir()
    (made / "a").write_text("a")
    (made / "link").symlink_to("a")
    os.utime(made / "a", (1, 1))
    target = fill(tmp_path, "folder", str(made))
    assert (target / "a").stat().st_mtime == 1 and os.readlink(target / "link") == "a"


def test_the_code_of_a_run(tmp_path: Path) -> None:
    """Links to the read-only checkout become files that can be written to; links of the project stay links."""
    code, work = tmp_path / "snapshots" / "1234", tmp_path / "run" / "work"
    (code / "sub").mkdir(parents=True)
    work.mkdir(parents=True)
    for each in ("a", "sub/b"):
        (code / each).write_text(each)
        (code / each).chmod(0o444)
    for each in ("a", "sub"):
        (work / each).symlink_to(code / each)
    (work / "own").symlink_to("a")
    target = fill(tmp_path, "project", "")
    assert not (target / "a").is_symlink() and os.readlink(target / "own") == "a"
    assert {(target / each).stat().st_mode & 0o200 for each in ("a", "sub/b")} == {0o200}
    assert (target / "sub" / "b").read_text() == "sub/b" and (code / "a").stat().st_mode & 0o777 == 0o444


def test_git(dev: DevNodes, tmp_path: Path) -> None:
    """A clone, and a failed one: the reason shows no password, and nothing is left."""
    made = tmp_path / "made"
    made.mkdir()
    (made / "a").write_text("a")
    run("git", "init", "-q", cwd=made)
    run("git", "add", "a", cwd=made)
    run("git", "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "a", cwd=made)
    failing = dev("n1", source={"kind": "git", "value": "https://me:word@localhost:1/x.git"})
    why = failing.why()
    assert "cannot clone https://localhost:1/x.git" in why and "word" not in why + failing.log
    assert not failing.workspace.exists() and not list(failing.root.rglob("fresh-*"))
    node = dev("n1", source={"kind": "git", "value": f"file://{made}"}).ready()
    assert (node.workspace / "a").read_text() == "a" and (node.workspace / ".git").is_dir() and node.numbers() == [1]


def test_quotas() -> None:
    text = """Disk quotas for user alice (uid 1001):
     Filesystem  blocks   quota   limit   grace   files   quota   limit   grace
      /dev/sda1  950      1000    1200            5       0       0
      /dev/sdb1  95*      90      100     6days   5       0       0
      /dev/sdc1  10       100     100             5       0       0
"""
    assert [each.partition(" is ")[0] for each in disk.near_quota(text)] == [
        "your quota on /dev/sda1",
        "your quota on /dev/sdb1",
    ]
