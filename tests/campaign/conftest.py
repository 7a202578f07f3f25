"""After a campaign, the lab is as other tests expect it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def unlinked(request: pytest.FixtureRequest) -> Iterator[None]:
    """Disconnect the clusters from each other again."""
    yield
    if "lab" in request.fixturenames:
        request.getfixturevalue("lab").faults.unlink()
