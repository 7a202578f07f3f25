"""The pack of a small edit, which yurt writes without git: git reads it, and it is complete."""

from __future__ import annotations

import random
import shutil
import subprocess
from pathlib import Path

import pytest

from yurt.snapshot import edit, objects, tree
from yurt.snapshot.tree import Snapshot


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    for name in ("a.py", "deep/b.py", "deep/er/c.py", "deep/er/d.py", "other/e.py"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(f"print('{name}')\n")
    return root


def taken(project: Path) -> Snapshot:
    return tree.take(project, project.parent / "store")


def git(folder: Path, *words: str, stdin: bytes = b"") -> bytes:
    return subprocess.run(["git", *words], cwd=folder, input=stdin, capture_output=True, check=True).stdout


def unpacked(project: Path, base: Snapshot, new: Snapshot) -> list[str]:
    """Return the files of `new` in a repository that had only `base`, after its pack was unpacked there."""
    pack = edit.difference(new.store, new.tree, base.tree)
    assert pack is not None
    site = project.parent / f"site-{new.tree}"
    git(project.parent, "init", "-q", "--bare", str(site))
    wanted = git(
        new.store, "--git-dir=.", "pack-objects", "--stdout", "--revs", "--quiet", stdin=f"{base.tree}\n".encode()
    )
    git(site, "unpack-objects", "-q", stdin=wanted)
    git(site, "unpack-objects", "-q", "--strict", stdin=pack)
    git(site, "fsck", "--connectivity-only", new.tree)
    return git(site, "ls-tree", "-r", new.tree).decode().splitlines()


@pytest.mark.parametrize("seed", range(8))
def test_edits_of_every_kind(project: Path, seed: int) -> None:
    chance = random.Random(seed)
    first = taken(project)
    for step in range(4):
        names = [each for each in project.rglob("*") if each.is_file()]
        what = chance.choice(["change", "new", "move", "remove", "folder for file", "mode", "link", "copy"])
        chosen = chance.choice(names)
        if what == "change":
            chosen.write_text(f"{chance.random()}\n")
        elif what == "new":
            (chosen.parent / f"new{step}" / "in").mkdir(parents=True)
            (chosen.parent / f"new{step}" / "in" / "f").write_text(f"{step}")
        elif what == "move":
            shutil.move(chosen, project / f"moved{step}")
        elif what == "remove" and len(names) > 2:
            chosen.unlink()
        elif what == "folder for file":
            chosen.unlink()
            chosen.mkdir()
            (chosen / "inner").write_text("x")
        elif what == "mode":
            chosen.chmod(0o755)
        elif what == "link":
            (chosen.parent / f"link{step}").symlink_to("a.py")
        else:
            shutil.copytree(project / "deep", project / f"copy{step}", symlinks=True, dirs_exist_ok=True) if (
                project / "deep"
            ).is_dir() else None
        new = taken(project)
        if new.tree == first.tree:
            continue
        expected = git(new.store, "--git-dir=.", "ls-tree", "-r", new.tree).decode().splitlines()
        assert unpacked(project, first, new) == expected


def test_only_what_changed_is_sent(project: Path) -> None:
    base = taken(project)
    (project / "deep" / "b.py").write_text("changed\n")
    new = taken(project)
    pack = edit.difference(new.store, new.tree, base.tree)
    assert pack is not None
    assert int.from_bytes(pack[8:12]) == 3, "the file, its folder, and the top folder"


def test_git_packs_what_is_large_or_in_a_pack(project: Path) -> None:
    base = taken(project)
    (project / "large").write_bytes(random.Random(1).randbytes(edit.LARGEST + 1))
    new = taken(project)
    assert edit.difference(new.store, new.tree, base.tree) is None
    assert edit.difference(new.store, new.tree, "0" * 40) is None, "not in the store"


def test_a_damaged_object_is_not_sent(project: Path) -> None:
    base = taken(project)
    (project / "a.py").write_text("changed\n")
    new = taken(project)
    blob = objects.loose(new.store, objects.identify(b"blob", b"changed\n"))
    blob.chmod(0o600)
    blob.write_bytes(objects.deflate(b"blob 8\0", b"damaged\n"))
    assert edit.difference(new.store, new.tree, base.tree) is None
