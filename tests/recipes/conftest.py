"""The fixtures of the API tests."""

from tests.api.conftest import at_home, here, with_clusters

__all__ = ["at_home", "here", "with_clusters"]
