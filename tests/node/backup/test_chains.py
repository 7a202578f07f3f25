"""Chains of edits and saves, also over several nodes: every version restores exactly what was there."""

from __future__ import annotations

import shutil
from pathlib import Path
from random import Random

import pytest

from tests.node.backup.trees import Editor, Fingerprint, fingerprint
from yurt.node.backup import Workspace, restore, retain, verify, versions


@pytest.mark.parametrize("seed", range(3))
def test_every_version_restores_what_was_there(tmp_path: Path, seed: int) -> None:
    chain(tmp_path, Random(seed))


def chain(folder: Path, dice: Random, saves: int = 7) -> None:
    """Edit and save in turns; move to another node, start again, and drop old versions now and then."""
    backups, place, state = str(folder / "backups"), folder / "node0" / "work", folder / "node0" / "state"
    place.mkdir(parents=True)
    compression = dice.choice(["auto", "lz4", "gzip"])
    workspace = Workspace(str(place), backups, str(state), compression=compression)
    expected: dict[int, Fingerprint] = {}
    for number in range(saves):
        Editor(place, dice).edit(dice.choice([1, 3, 30]))
        there = fingerprint(place)
        version = workspace.save("test")
        if version is None:
            assert there == expected[workspace.base]
        else:
            assert not version.fork
            assert version.note == ""
            expected[version.number] = there
        assert workspace.changes() == 0
        what = dice.random()
        if what < 0.3:
            place, state = folder / f"node{number + 1}" / "work", folder / f"node{number + 1}" / "state"
            restore(backups, workspace.base, str(place), str(state))
            assert fingerprint(place) == expected[workspace.base]
        if what < 0.5:
            workspace = Workspace(str(place), backups, str(state), compression=compression)
            assert workspace.base == max(expected) and workspace.changes() == 0
        if what > 0.9:
            for dropped in retain(backups, last=2, days=0, weeks=0):
                del expected[dropped]
    assert [each.number for each in versions(backups)] == sorted(expected)
    for number, there in expected.items():
        verify(backups, number)
        target = folder / f"v{number}"
        restore(backups, number, str(target))
        assert fingerprint(target) == there, f"version {number}"
        shutil.rmtree(target)
