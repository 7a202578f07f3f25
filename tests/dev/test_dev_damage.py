"""`yurt dev` with a damaged backup, on this machine: it is named, mended, and never restored in part."""

from __future__ import annotations

from pathlib import Path

import pexpect

from tests.user import User


def test_a_damaged_backup(user: User, tmp_path: Path) -> None:
    user.environment["HOME"] = str(user.home)
    made = user.quick("dev", "up", "k", "--context", "local", "--json").json["data"]
    try:
        Path(made["workspace"], "a.txt").write_text("one")
        assert user.quick("dev", "backup", "k").out.startswith("v2: ")
        listed = user.quick("dev", "backups", "k", "--json").json["data"]
        assert [each["damaged"] for each in listed["versions"]] == [False, False]
        assert user.quick("dev", "backup", "k", "--check").out.startswith(
            "no version is damaged\nnothing changed since v2"
        )
        pack = next(Path(listed["folder"]).glob("p2-*"))
        content = pack.read_bytes()
        pack.write_bytes(content[:-9])
        with user.spawn("dev", "down", "k", "--now", columns=120) as terminal:
            terminal.expect(
                "v2 is damaged, so its files may be only on the node: end dev node 'k' without a last backup"
            )
            terminal.sendline("n")
            terminal.expect(pexpect.EOF)
        pack.write_bytes(content[:-9] + b"x" + content[-8:])
        target = tmp_path / "target"
        refused = user.quick("dev", "restore", "--name", "k", "--to", str(target))
        assert refused.code == 5 and f"cannot restore v2: its file {pack.name} is damaged\n" in refused.err, refused
        hint = (
            "the dev node has the newest files: `yurt dev backup k --check` saves them again; v1 is the newest version"
        )
        assert hint in " ".join(refused.err.split()) and not target.exists()
        mended = user.quick("dev", "backup", "k", "--check")
        assert mended.out.startswith("damaged: v2\nv3: ") and f"packs were saved again: {pack.name}" in mended.out, (
            mended
        )
        rows = user.quick("dev", "backups", "k").out.splitlines()
        assert [row.endswith("  damaged") for row in rows[1:4]] == [False, True, False], rows
        assert user.quick("dev", "restore", "--name", "k", "--to", str(target)).code == 0
        assert (target / "a.txt").read_text() == "one"
        again = user.quick("dev", "restore", "--name", "k", "--at", "v2", "--to", str(tmp_path / "other"))
        assert again.code == 5 and "v2 of dev node 'k' on local is damaged, and cannot be restored" in again.err, again
        pack.unlink()
        again = user.quick("dev", "restore", "--name", "k", "--at", "v2", "--to", str(tmp_path / "other"), "a.txt")
        assert again.code == 5 and "v2 of dev node 'k' on local is damaged, and cannot be restored" in again.err, again
        assert user.quick("dev", "down", "k", "--json").json["data"]["version"] == 3
        refused = user.quick("dev", "up", "k", "--context", "local", "--restore", "v2")
        assert refused.code == 5 and "v3 is the newest version that is not damaged" in refused.err, refused
    finally:
        user.quick("dev", "down", "k", "--now", "--yes")
