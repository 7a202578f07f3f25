"""Which version of a workspace a user means."""

from __future__ import annotations

from datetime import datetime

import pytest

from yurt.dev.moments import chosen
from yurt.errors import NotFoundError, UserError
from yurt.model.workspace import Version, read

NOW = datetime(2026, 11, 17, 15, 0).timestamp()


def version(number: int, when: str, *, fork: bool = False) -> Version:
    return Version(number=number, time=datetime.fromisoformat(when).timestamp(), fork=fork)


VERSIONS = [
    version(1, "2026-11-15 10:00"),
    version(2, "2026-11-16 18:00"),
    version(3, "2026-11-17 09:00"),
    version(4, "2026-11-17 14:30:20", fork=True),
    version(5, "2026-11-17 14:40"),
]


@pytest.mark.parametrize(
    ("at", "number"),
    [
        *(("", 5), ("v4", 4), ("4", 4), ("v1", 1)),
        *(("14:30", 3), ("14:40", 5), ("19:00", 2), ("09:00:00", 3), ("2h ago", 3), ("1d ago", 1), ("30m ago", 3)),
        *(("2026-11-16", 2), ("2026-11-15", 1), ("yesterday", 2), ("2026-11-16 12:00", 1), ("2026-11-16T19:00", 2)),
    ],
)
def test_chosen(at: str, number: int) -> None:
    assert chosen(VERSIONS, at, NOW).number == number


@pytest.mark.parametrize("at", ["v9", "2026-11-14", "9d ago"])
def test_no_such_version(at: str) -> None:
    with pytest.raises(NotFoundError):
        chosen(VERSIONS, at, NOW)


@pytest.mark.parametrize(
    "at", ["soon", "25:00", "2026-13-01", "some time ago", "v", "-1", "999999999999h ago", "9999-12-31", " "]
)
def test_unclear(at: str) -> None:
    with pytest.raises(UserError):
        chosen(VERSIONS, at, NOW)


def test_backups_folders() -> None:
    head = '{"version": {"number": 2, "time": 5.0, "reason": "asked"}, "index": "i1-x", "packs": [["p1-y.tar.zst", 7]]}'
    text = f"folder\nholder {{}}\nversion v2 {head}\nversion v3 {head}\nversion v4 {{\nsize 8\nfolder\n"
    first, second = read(text)
    assert ([each.number for each in first.versions], first.files, first.size) == (
        [2],
        {2: ["p1-y.tar.zst", "i1-x", "v2"]},
        8192,
    )
    assert second.versions == []
    assert read(f"folder\nversion v2 {head.replace('p1-y', '../p')}\n")[0].versions == []
