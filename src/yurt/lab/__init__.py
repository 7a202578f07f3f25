"""Real Slurm in a box: two clusters on this one machine, to try yurt, to teach, to test."""

from yurt.lab.lab import Lab, Started

__all__ = ["Lab", "Started"]
