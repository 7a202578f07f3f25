"""Recorded outputs of `lfs quota`, `quota -w` and `df`, and words that are none."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from yurt.model.quotas import read_df, read_lfs, read_quota
from yurt.model.storage import Quota

GB, TB = 2**30, 2**40

LFS = """\
Disk quotas for usr alice (uid 1234):
     Filesystem  kbytes   quota   limit   grace   files   quota   limit   grace
/lustre/scratch 1073741824 21474836480 22548578304       -  250000 1000000 1100000       -
"""
QUIET = "/lustre/scratch 1073741824 21474836480 22548578304       -  250000 1000000 1100000       -\n"
LONG = """\
Disk quotas for user alice (uid 1234):
      Filesystem    used   quota   limit   grace   files   quota   limit   grace
/lustre/a/very/long/path/of/a/file/system
                1073741824       0 22548578304       -  250000       0 1100000       -
uid 1234 is using default block quota setting
"""
OVER = "/l 22548578304* 21474836480 22548578304 6d23h59m57s 1000001* 1000000 1100000 6d23h\n"
SILENT = (
    '/l [1073741824] 0 0 - [250000] 0 0 -\nSome errors happened when getting quota info. Data in "[]" is inaccurate.\n'
)
HUMAN = "/l 1.5T 20T 21T - 250000 1000000 1100000 -\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (LFS, Quota(used=TB, limit=20 * TB, files=250_000, files_limit=1_000_000)),
        (QUIET, Quota(used=TB, limit=20 * TB, files=250_000, files_limit=1_000_000)),
        (LONG, Quota(used=TB, limit=21 * TB, files=250_000, files_limit=1_100_000)),
        (OVER, Quota(used=21 * TB, limit=20 * TB, files=1_000_001, files_limit=1_000_000)),
        (SILENT, Quota(used=TB, files=250_000)),
        (HUMAN, Quota(used=TB * 3 // 2, limit=20 * TB, files=250_000, files_limit=1_000_000)),
        ("Permission denied.\n", None),
        ("", None),
    ],
)
def test_lfs(text: str, expected: Quota | None) -> None:
    assert read_lfs(text) == expected


QUOTA = """\
Disk quotas for user alice (uid 1234):
     Filesystem  blocks   quota   limit   grace   files   quota   limit   grace
nas:/home/alice 20971520  52428800 57671680          120000  500000  550000
      /dev/sdb1 60000000* 52428800 57671680   6days    1200       0       0
       /dev/sdc      12        0  1048576              7*       5      10   none
"""


def test_quota() -> None:
    assert read_quota(QUOTA) == {
        "nas:/home/alice": Quota(used=20 * GB, limit=50 * GB, files=120_000, files_limit=500_000),
        "/dev/sdb1": Quota(used=60_000_000 * 1024, limit=50 * GB, files=1200),
        "/dev/sdc": Quota(used=12 * 1024, limit=GB, files=7, files_limit=5),
    }
    assert read_quota("Disk quotas for user alice (uid 1234): none\n") == {}


def test_df() -> None:
    head = "Filesystem 1024-blocks Used Available Capacity Mounted on"
    assert read_df([head, "nas:/export/my home 1000 400 600 40% /home"]) == ("nas:/export/my home", 1000, 600)
    assert read_df([head, "tmpfs 1000 400 600 40% /mnt/with space"]) == ("tmpfs", 1000, 600)
    assert read_df(["Filesystem Inodes IUsed IFree IUse% Mounted on", "btrfs 0 0 0 - /b"]) == ("btrfs", 0, 0)
    assert read_df([]) == ("", None, None)


@given(st.text())
def test_any_text(text: str) -> None:
    read_lfs(text)
    read_quota(text)
    read_df(text.split("\n"))
