"""Where a named place is on a context."""

from __future__ import annotations

import pytest

from tests.storage.test_tiers import FACTS, site
from yurt.errors import YurtError
from yurt.model.place import parse
from yurt.storage.places import path_of


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("scratch:runs/a b", "/scratch/me/runs/a b"),
        ("scratch:", "/scratch/me"),
        ("big:scratch:x/", "/scratch/me/x"),
        ("big:/data/x", "/data/x"),
        ("big:~/x", "/home/me/x"),
        ("data:x", "/scratch/me/d/x"),
    ],
)
def test_paths(name: str, path: str) -> None:
    place = parse(name)
    assert place is not None
    assert path_of(site(tiers={"data": "$SCRATCH/d"}), FACTS, place) == path


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("project:x", "big has no storage tier 'project'; it has: home, scratch, tmpdir"),
        ("tmpdir:x", "'tmpdir:x' is on the disk of each node, which only its jobs reach"),
        ("scratch:../you", "'scratch:../you' contains '..'"),
        ("big:/data/../etc", "'big:/data/../etc' contains '..'"),
    ],
)
def test_what_is_refused(name: str, said: str) -> None:
    place = parse(name)
    assert place is not None
    with pytest.raises(YurtError) as error:
        path_of(site(), FACTS, place)
    assert error.value.message == said
