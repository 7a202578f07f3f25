"""yurt: a researcher's project on any cluster, and its results back home."""

__version__ = "0.1.0"
