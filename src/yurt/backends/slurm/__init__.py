"""Slurm backend: scripts and their parsers."""
