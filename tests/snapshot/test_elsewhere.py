"""Files from outside a project are included in the snapshot under their last name."""

from __future__ import annotations

from pathlib import Path

import pytest

from yurt.errors import UserError
from yurt.snapshot import git, take


def names(store: Path, tree: str) -> set[bytes]:
    listed = git.call(["ls-tree", "-r", "-z", "--name-only", tree], folder=store, own=store)
    return {name for name in listed.split(b"\0") if name}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    made = tmp_path / "project"
    made.mkdir()
    (made / "train.py").write_text("pass\n")
    shared = tmp_path / "shared lib"
    (shared / "deep").mkdir(parents=True)
    (shared / "deep" / "a.py").write_text("one\n")
    (shared / ".gitignore").write_text("ignored\n")
    (shared / "ignored").write_text("x")
    return made


def test_folders_and_files(project: Path, tmp_path: Path) -> None:
    (tmp_path / "one").write_text("1")
    shared, store = tmp_path / "shared lib", tmp_path / "store.git"
    first = take(project, store, also=[shared, tmp_path / "one"])
    assert names(store, first.tree) == {b"train.py", b"one", b"shared lib/.gitignore", b"shared lib/deep/a.py"}
    assert take(project, store, also=[shared, tmp_path / "one"]).tree == first.tree
    (shared / "deep" / "a.py").write_text("two, which is longer\n")
    second = take(project, store, also=[shared, tmp_path / "one"])
    assert second.tree != first.tree
    shown = git.call(["cat-file", "blob", f"{second.tree}:shared lib/deep/a.py"], folder=store, own=store)
    assert shown == b"two, which is longer\n"
    assert names(store, take(project, store).tree) == {b"train.py"}


def test_missing_and_conflicting_paths(project: Path, tmp_path: Path) -> None:
    store = tmp_path / "store.git"
    with pytest.raises(UserError, match=r"nosuch.*No such file"):
        take(project, store, also=[tmp_path / "nosuch"])
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "train.py").write_text("x")
    with pytest.raises(UserError, match=r"conflicts with"):
        take(project, store, also=[tmp_path / "other" / "train.py"])
