"""Fixtures of tests of services."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.services import packages


@pytest.fixture(scope="session")
def package_options() -> Iterator[list[str]]:
    """Return the options of `yurt serve` with which nodes use the packages of this environment."""
    with packages.environment() as home:
        yield [word for item in packages.variables(home).items() for word in ("--var", "=".join(item))]
