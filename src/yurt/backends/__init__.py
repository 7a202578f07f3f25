"""Backends: the capabilities of each kind of context."""
