"""storage.sh with this machine's df and recorded programs of other file systems, and what its output says."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from yurt.backends.shell import storage
from yurt.model.storage import Quota, StorageReport, TierPlace

MARK = "mark"


def ask(folder: Path, places: list[TierPlace], report: str = "", **programs: str) -> StorageReport:
    """Run the script with programs that print these texts."""
    for name, text in programs.items():
        (folder / name).write_text(f"#!/bin/sh\ncat << 'END'\n{text}\nEND\n")
        (folder / name).chmod(0o700)
    done = subprocess.run(
        ["sh", "-c", storage.script(), "sh", MARK, report],
        input=storage.rows(places),
        capture_output=True,
        env={**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"},
        check=True,
    )
    return storage.read(MARK, done.stdout.decode(), places)


def test_this_machine(tmp_path: Path) -> None:
    (tmp_path / "with space").mkdir()
    places = [
        TierPlace(name="home", path=str(tmp_path / "with space")),
        TierPlace(name="archive", path="/no/such/folder"),
        TierPlace(name="tmpdir", path=""),
    ]
    home, archive, tmpdir = ask(tmp_path, places).tiers
    room = os.statvfs(tmp_path)
    assert home.there and home.writable and home.total == room.f_blocks * room.f_frsize and home.free
    assert not archive.there and archive.total is None and not tmpdir.there
    assert home.quota is None and home.source == ""


def test_a_quota(tmp_path: Path) -> None:
    df = "Filesystem 1024-blocks Used Available Capacity Mounted on\nnas:/home 1000 400 600 40% /home"
    quota = "Disk quotas for user me (uid 1):\n Filesystem blocks quota limit grace files quota limit grace\n"
    row = "nas:/home 20 50 60  7 100 110\n"
    (home,) = ask(tmp_path, [TierPlace(name="home", path=str(tmp_path))], df=df, quota=quota + row).tiers
    assert (home.device, home.source) == ("nas:/home", "quota")
    assert home.quota == Quota(used=20 * 1024, limit=50 * 1024, files=7, files_limit=100)


def test_lustre(tmp_path: Path) -> None:
    lfs = f"{tmp_path} 20 50 60 - 7 100 110 -"
    (scratch,) = ask(tmp_path, [TierPlace(name="scratch", path=str(tmp_path))], stat="lustre", lfs=lfs).tiers
    assert (scratch.filesystem, scratch.source) == ("lustre", "lfs quota")
    assert scratch.quota is not None and scratch.quota.files_limit == 100


def test_the_report_of_the_site(tmp_path: Path) -> None:
    places = [TierPlace(name="home", path=str(tmp_path))]
    found = ask(tmp_path, places, "echo /home 3 of 5; false")
    assert "/home 3 of 5" in found.report and found.failed == "exit code 1" and found.tiers[0].there
    assert ask(tmp_path, places).report == ""
