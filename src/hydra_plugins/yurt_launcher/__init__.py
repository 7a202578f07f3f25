"""Hydra's launcher that runs the jobs of a multirun on a context: `hydra/launcher=yurt`.

Nothing of it need be installed there: what runs there travels by value.
"""
