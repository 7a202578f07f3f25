"""Slow tests: `make test` leaves out those that a quicker test almost replaces; SLOW_TESTS=1 includes them."""

from __future__ import annotations

import os

import pytest

SLOW = "needs `make test SLOW=1`"


def pytest_configure(config: pytest.Config) -> None:
    text = "slow(*ids): runs only with SLOW_TESTS=1; with ids, only the variants with one of these parameters"
    config.addinivalue_line("markers", text)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if os.environ.get("SLOW_TESTS"):
        return
    for item in items:
        if any(_applies(item, mark.args) for mark in item.iter_markers("slow")):
            item.add_marker(pytest.mark.skip(reason=SLOW))


def _applies(item: pytest.Item, ids: tuple[str, ...]) -> bool:
    """Whether a test has one of the ids as a parameter, or as its whole id. Without ids, it does."""
    own = item.callspec.id if hasattr(item, "callspec") else ""
    return not ids or own in ids or not set(ids).isdisjoint(own.split("-"))
