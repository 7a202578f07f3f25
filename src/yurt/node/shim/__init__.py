"""Replacements for mrunner and munch, in a run and while a spec file is read; Python 3.6, standard library only."""
