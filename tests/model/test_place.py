"""Names of places."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from yurt.model.place import PlaceName, parse


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("project:datasets/cifar", PlaceName(tier="project", path="datasets/cifar")),
        ("project:", PlaceName(tier="project", inside=True)),
        ("project:datasets/", PlaceName(tier="project", path="datasets", inside=True)),
        ("project:a//b", PlaceName(tier="project", path="a/b")),
        ("alpha:scratch:x", PlaceName(context="alpha", tier="scratch", path="x")),
        ("alpha:scratch:", PlaceName(context="alpha", tier="scratch", inside=True)),
        ("alpha:/data/me", PlaceName(context="alpha", path="/data/me")),
        ("alpha:/", PlaceName(context="alpha", path="/", inside=True)),
        ("alpha:~/data", PlaceName(context="alpha", path="~/data")),
        ("scratch:a:b", PlaceName(context="scratch", tier="a", path="b")),
        ("scratch:a b:c", PlaceName(tier="scratch", path="a b:c")),
        ("data", None),
        ("./a:b", None),
        ("/a:b", None),
        (":a", None),
        ("C:\\data", None),
    ],
)
def test_names(text: str, place: PlaceName | None) -> None:
    assert parse(text) == place


@given(st.text(alphabet="ab:/~. ", max_size=12))
def test_a_name_says_the_same_again(text: str) -> None:
    place = parse(text)
    if place is not None:
        assert parse(str(place)) == place
