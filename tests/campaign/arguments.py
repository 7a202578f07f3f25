"""The arguments of the campaigns, with types: a misspelled one is an error of mypy, not of a campaign."""

from __future__ import annotations


class Asked:
    """What `argparse` fills in."""

    seed: int | None
    runs: int
    sweeps: int
    only: list[str]
    home: str | None
    timeout: float
