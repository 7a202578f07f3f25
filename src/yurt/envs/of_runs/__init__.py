"""Environments of runs: which one a run uses, where it is, and its build on the site."""
