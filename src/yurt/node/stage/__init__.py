"""Inputs and outputs of a run on the disk of its node. Standard library only, Python 3.6."""
