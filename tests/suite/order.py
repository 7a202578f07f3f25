"""Order of tests: at random by a seed, but tests that share an expensive fixture stay together, those on the lab first.

`pytest --seed 7` repeats an order. A test has the same place among the others if only some of them are selected.
"""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from typing import Any

import pytest

TIME_LEFT = "needs more time than `make test CHANGED=1` has"

TOOK = "suite/took"
"""pytest's cache has the seconds that each test took last, under this name."""

seconds = pytest.StashKey[float]()

LAST = 20.0
"""Seconds after the end of `--until` in which a test may still be running."""


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("order", "order of the tests")
    group.addoption("--seed", type=int, help="draw the order of the tests from this number (default: a new one)")
    group.addoption("--until", type=float, help="run the files in the order given; start no test after this time")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "alone: inspects the whole machine, so no other test may run at the same time")
    if hasattr(config, "workerinput"):
        config.option.seed = config.workerinput["seed"]
    elif config.option.seed is None:
        config.option.seed = random.randrange(10**6)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Give a worker of pytest-xdist the seed."""
    node.workerinput["seed"] = node.config.option.seed


@pytest.hookimpl(tryfirst=True)  # pytest-xdist reads the groups right after
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        group = _group(item, _scopes(item))
        if group and item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group(group))
    cache = getattr(config, "cache", None)  # -p no:cacheprovider
    took = cache.get(TOOK, {}) if cache is not None else {}
    for item in items:
        item.stash[seconds] = took.get(item.nodeid, 0.0)
    sort(items, config.option.seed, config.args if config.option.until else [])


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    until = item.config.option.until
    if until and max(time.time(), time.time() + item.stash[seconds] - LAST) > until:
        pytest.skip(TIME_LEFT)


def sort(items: list[pytest.Item], seed: int, first: Sequence[str] = ()) -> None:
    """Shuffle tests within their rank, and the tests of a group within the group. The first files stay the first."""
    places = {path: place for place, path in enumerate(first)}

    def key(item: pytest.Item) -> tuple[object, ...]:
        names = (_together(item), _file(item), _class(item), item.nodeid)
        return places.get(_file(item), len(places)), _rank(item), *(_draw(seed, name) for name in names)

    items.sort(key=key)


def _draw(seed: int, name: str) -> float:
    """Return a random number that depends on nothing but the seed and the name."""
    return random.Random(f"{seed} {name}").random()


def _scopes(item: pytest.Item) -> set[str]:
    """Return the scopes of the fixtures that a test uses."""
    names = getattr(item, "fixturenames", ())
    found = item.session._fixturemanager
    return {definition.scope for name in names for definition in (found.getfixturedefs(name, item) or ())[-1:]}


def _group(item: pytest.Item, scopes: set[str]) -> str:
    """Return the class or module whose fixtures a test shares with others; empty if it shares none."""
    return _file(item) if "module" in scopes else _class(item) if "class" in scopes else ""


def _together(item: pytest.Item) -> str:
    """Return what the tests that are not mixed with others share: their group, or a fixture of their folder."""
    mark = item.get_closest_marker("xdist_group")
    if mark is not None:
        return str(mark.args[0])
    return str(item.path.parent) if "package" in _scopes(item) else item.nodeid


def _file(item: pytest.Item) -> str:
    return item.nodeid.partition("::")[0]


def _class(item: pytest.Item) -> str:
    """Return the id of the class or module of a test."""
    return item.nodeid.partition("[")[0].rpartition("::")[0]


def _rank(item: pytest.Item) -> int:
    """Return a sort key: groups on the lab take longest and run first; tests without the lab run last."""
    on_lab = item.get_closest_marker("lab") is not None
    grouped = item.get_closest_marker("xdist_group") is not None
    return (0 if grouped else 1) if on_lab else (2 if grouped else 3)
