"""Two real Slurm clusters on one Linux machine, for trying yurt, teaching and testing."""

from yurt.lab.lab import Lab, Started

__all__ = ["Lab", "Started"]
