"""Who else can write to a file: by its mode, its group, and its access control list, which hides behind the group."""

from __future__ import annotations

import errno
import grp
import os
import pwd
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from yurt.config.text import text_of
from yurt.errors import UserError
from yurt.node.dev.place import unsafe
from yurt.node.writers import others_write

ME, BOB = os.geteuid(), os.geteuid() + 4711
MINE, THEIRS = 100, 300
"""Numbers of groups: the private one of this user, and one with other members."""

OWNER, USER, GROUP, NAMED, MASK, OTHER = 0x01, 0x02, 0x04, 0x08, 0x10, 0x20
NOBODY = 0xFFFFFFFF


@pytest.fixture(autouse=True)
def groups(monkeypatch: pytest.MonkeyPatch) -> None:
    members: dict[int, list[str]] = {MINE: [], THEIRS: ["bob"]}
    monkeypatch.setattr("grp.getgrgid", lambda number: grp.struct_group(("me", "x", number, members[number])))
    monkeypatch.setattr("pwd.getpwuid", lambda uid: pwd.struct_passwd(("me", "x", uid, MINE, "", "/", "/bin/sh")))
    monkeypatch.delenv("SUDO_UID", raising=False)


def posix(*named: tuple[int, int, int], group: int = 7, mask: int = 7) -> bytes:
    entries = [(OWNER, 7, NOBODY), *named[:1], (GROUP, group, NOBODY), *named[1:], (MASK, mask, NOBODY)]
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *each) for each in [*entries, (OTHER, 0, NOBODY)])


def nfs(*entries: tuple[int, int, int, bytes]) -> bytes:
    parts = (struct.pack(">IIII", *each[:3], len(each[3])) + each[3] + bytes(-len(each[3]) % 4) for each in entries)
    return struct.pack(">I", len(entries)) + b"".join(parts)


LISTS = [
    pytest.param({}, False, id="none"),
    pytest.param({"posix_acl": posix((USER, 7, BOB))}, True, id="bob"),
    pytest.param({"posix_acl": posix((USER, 5, BOB))}, False, id="bob-reads"),
    pytest.param({"posix_acl": posix((USER, 7, ME))}, False, id="me"),
    pytest.param({"posix_acl": posix((USER, 5, BOB), (NAMED, 7, THEIRS))}, True, id="their-group"),
    pytest.param({"posix_acl": posix((USER, 5, BOB), (NAMED, 7, MINE))}, False, id="my-group"),
    pytest.param({"nfs4": nfs((0, 0, 0x1F, b"OWNER@"), (0, 0x40, 0x1F, b"GROUP@"))}, False, id="nfs"),
    pytest.param({"nfs4": nfs((0, 0, 0x1F, b"OWNER@"), (0, 0, 0x2, b"bob@big.example"))}, True, id="nfs-bob"),
    pytest.param({"nfs4": nfs((0, 0, 0x1F, b"OWNER@"), (0, 0, 0x1, b"bob@big.example"))}, False, id="nfs-bob-reads"),
    pytest.param({"nfs4": nfs((0, 0xB, 0x2, b"bob@big.example"), (1, 0, 0x2, b"x@y"))}, False, id="nfs-below"),
    pytest.param({"nfs4": nfs((0, 0x40, 0x40000, b"staff@big.example"))}, True, id="nfs-changes-it"),
]


@pytest.mark.parametrize(("lists", "others"), LISTS)
@pytest.mark.parametrize("mode", [0o660, 0o640])
def test_lists(lists: dict[str, bytes], *, others: bool, mode: int, monkeypatch: pytest.MonkeyPatch) -> None:
    names = {"posix_acl": "system.posix_acl_access", "nfs4": "system.nfs4_acl"}
    found = {names[kind]: content for kind, content in lists.items()}

    def getxattr(_path: str, name: str) -> bytes:
        if name not in found:
            raise OSError(errno.ENODATA, name)
        return found[name]

    monkeypatch.setattr("os.getxattr", getxattr)
    about = os.stat_result((0o100000 | mode, 1, 1, 1, ME, MINE, 1, 0, 0, 0))
    assert others_write("file", about, ME) == (others and bool(mode & 0o020)), "without the mask, nobody can write"


@pytest.fixture
def allow(tmp_path: Path) -> Callable[[Path], None]:
    """Let bob write to a file of this user's own group, as `setfacl -m u:bob:rwx` does."""

    def allowed(path: Path) -> None:
        os.chown(path, ME, MINE)
        os.setxattr(path, "system.posix_acl_access", posix((USER, 7, BOB)))

    if ME:
        pytest.skip("needs root, to give files to a group")
    (tmp_path / "tried").touch()
    try:
        allowed(tmp_path / "tried")
    except OSError:
        pytest.skip("needs a file system with access control lists")
    return allowed


def test_a_configuration_that_bob_can_write(tmp_path: Path, allow: Callable[[Path], None]) -> None:
    file = tmp_path / "contexts.yaml"
    file.write_text("contexts: {}\n")
    os.chown(file, ME, MINE)
    file.chmod(0o664)
    assert text_of(file, trusted=True), "as with umask 002"
    allow(file)
    with pytest.raises(UserError) as refused:
        text_of(file, trusted=True)
    assert refused.value.code == "config-unsafe" and f"`chmod go-w {file}`" in refused.value.hint
    file.chmod(file.stat().st_mode & ~0o022)
    assert text_of(file, trusted=True), "as the hint says"


def test_a_workspace_that_bob_can_write(tmp_path: Path, allow: Callable[[Path], None]) -> None:
    folder = tmp_path / "workspace"
    folder.mkdir()
    os.chown(folder, ME, MINE)
    folder.chmod(0o770)
    assert unsafe(str(folder)) == ""
    allow(folder)
    assert unsafe(str(folder)).startswith(f"other users can write to {folder}")
    assert unsafe(str(folder / "below")) == f"other users can replace folders in {folder}"
