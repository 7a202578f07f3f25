"""A full disk and a damaged index are explained in one sentence, which says whether the run is kept and what to do."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.user import User


def damaged(whole: bytes, how: str) -> bytes:
    if how == "garbage":
        return b"this is no database" * 1000
    if how == "pages":
        return whole[:4096] + os.urandom(len(whole) - 4096)
    return whole[: {"truncated": len(whole) // 2, "short": 100, "empty": 0}[how]]


@pytest.mark.parametrize("how", ["garbage", "pages", "truncated", "short", "empty"])
def test_a_damaged_index(user: User, how: str) -> None:
    kept = user("--json", "run", "--wait", "true").json["data"]["run"]["id"]
    file = user.home / "data" / "yurt.db"
    for other in ("-wal", "-shm"):
        Path(f"{file}{other}").unlink(missing_ok=True)
    file.write_bytes(damaged(file.read_bytes(), how))
    os.utime(file, (1, 1))
    for words in (["ps"], ["show", kept], ["run", "true"], ["import", "local"]):
        done = user(*words)
        assert done.code == 5 and f"the run index {file} is damaged: " in done.err, done
        assert f"mv {file} {file}.damaged" in done.err and "yurt import" in done.err
        assert done.err.count("\n") == 2, "one sentence and a hint"
    file.rename(f"{file}.damaged")
    assert user("import", "local").code == 0
    assert user("--json", "show", kept).json["data"]["status"]["state"] == "completed", "import rebuilds the index"


@pytest.fixture
def small_disk(user: User) -> Iterator[Path]:
    """The data of yurt is on a disk of 3 MB."""
    data = user.home / "data"
    data.mkdir(mode=0o700)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m,mode=700", "none", str(data)], check=True)
    yield data
    subprocess.run(["umount", "-l", str(data)], check=True)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to mount a small disk")
def test_little_room(user: User, small_disk: Path, tmp_path: Path) -> None:
    """However little room there is, each run is saved or not, as the exit code says, and none runs twice."""
    ledger, ballast = tmp_path / "ledger", small_disk / "ballast"
    storage = tmp_path / "elsewhere"
    (user.home / "config").mkdir()
    (user.home / "config" / "contexts.yaml").write_text(
        f"contexts:\n  local:\n    type: local\n    storage_dir: {storage}\n"
    )
    command = ["sh", "-c", f"echo $YURT_RUN_ID >> {ledger}"]
    first = user("--json", "run", *command).json["data"]["run"]["id"]
    kept, refused = {first}, 0
    for room in (0, 4, 12, 24, 40, 64, 100, 160, 250):
        ballast.unlink(missing_ok=True)
        found = os.statvfs(small_disk)
        ballast.write_bytes(b"x" * max(0, found.f_bavail * found.f_frsize - room * 1024))
        done = user("--json", "run", *command)
        assert done.code in (0, 5), done
        if done.code == 0:
            kept.add(done.json["data"]["run"]["id"])
        else:
            assert done.json["error"]["code"] == "disk-full", done
            refused += 1
        assert user("ps").code in (0, 5)
    assert refused, "the disk was never full"
    ballast.unlink()
    assert user("wait", *kept).code == 0
    assert sorted(ledger.read_text().split()) == sorted(kept)
    assert {row["id"] for row in user("ps", "--all", "--json").json["data"]} == kept
