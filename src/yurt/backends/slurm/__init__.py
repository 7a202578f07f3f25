"""Slurm: scripts and parsers, side by side and pure."""
