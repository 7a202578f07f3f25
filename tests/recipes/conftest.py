"""A user's Python, as the tests of the API have it."""

from tests.api.conftest import at_home, here, with_clusters

__all__ = ["at_home", "here", "with_clusters"]
