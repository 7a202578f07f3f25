"""Order of tests: tests that share an expensive fixture run on one worker, the longest run first."""

from __future__ import annotations

import pytest


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "alone: inspects the whole machine, so no other test may run at the same time")


@pytest.hookimpl(tryfirst=True)  # pytest-xdist reads the groups right after
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        group = _group(item)
        if group and item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group(group))
    items.sort(key=_rank)


def _group(item: pytest.Item) -> str:
    """Return the class or module whose fixtures a test shares with others; empty if it shares none."""
    names = getattr(item, "fixturenames", ())
    found = item.session._fixturemanager
    scopes = {definition.scope for name in names for definition in (found.getfixturedefs(name, item) or ())[-1:]}
    if "module" in scopes:
        return item.nodeid.partition("::")[0]
    if "class" in scopes:
        return item.nodeid.rpartition("::")[0]
    return ""


def _rank(item: pytest.Item) -> int:
    """Return a sort key: groups on the lab take longest and run first; tests without the lab run last."""
    on_lab = item.get_closest_marker("lab") is not None
    grouped = item.get_closest_marker("xdist_group") is not None
    return (0 if grouped else 1) if on_lab else (2 if grouped else 3)
