"""What workspaces.sh prints of a backups folder: which versions are known to be damaged."""

from __future__ import annotations

import msgspec
import pytest

from yurt.model.workspace import read


def version(number: int, *packs: tuple[str, int], fork: bool = False) -> str:
    about = {"number": number, "time": number, "fork": fork}
    header = {"version": about, "index": "i1-x", "packs": [[name, size, "c", 1, 1] for name, size in packs]}
    return f"version v{number} {msgspec.json.encode(header).decode()}"


def ls(**sizes: int) -> list[str]:
    return [f"file -rw------- 1 0 0 {size} Nov 19 03:09 {name.replace('_', '-')}" for name, size in sizes.items()]


VERSIONS = [version(2, ("p1-x", 10), ("p2-x", 20)), version(1, ("p1-x", 10)), version(3, ("p2-x", 20), fork=True)]
CHECKED = 'checked {"damaged": {"p2-x": 1.5}, "pack": "", "at": 0, "sum": 0}'


@pytest.mark.parametrize(
    ("more", "damaged", "whole"),
    [
        ([], [], 2),  # a site whose ls prints something else
        (ls(p1_x=10, p2_x=20, i1_x=5), [], 2),
        (ls(p1_x=10, p2_x=19, i1_x=5), [2, 3], 1),
        (ls(p2_x=20, i1_x=5), [1, 2], None),
        (ls(p1_x=10, p2_x=20), [1, 2, 3], None),
        ([*ls(p1_x=10, p2_x=20, i1_x=5), CHECKED], [2, 3], 1),
        ([*ls(p1_x=10, p2_x=20, i1_x=5), "checked {"], [], 2),
    ],
)
def test_damaged_versions(more: list[str], damaged: list[int], whole: int | None) -> None:
    (found,) = read("\n".join(["folder", *VERSIONS, *more, "size 7"]))
    assert [each.number for each in found.versions] == [1, 2, 3] and found.size == 7 * 1024
    assert [each.number for each in found.versions if each.damaged] == damaged
    newest = found.whole()
    assert (None if newest is None else newest.number) == whole
    assert found.files[2] == ["p1-x", "p2-x", "i1-x", "v2"]


def test_whole_without_a_file() -> None:
    (found,) = read("\n".join(["folder", *VERSIONS]))
    newest = found.whole(without="p2-x")
    assert newest is not None and newest.number == 1
