"""Backends: the capabilities of each kind of context.

`base.py` defines the protocols, `registry.py` finds the backend of a context.
"""
