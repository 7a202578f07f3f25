"""Runs: what a user does with them, and their life cycle: plan, submit, refresh, read and fetch their files.

`select.py` finds the runs that a user names. The package is not called `runs`, because `yurt.runs` is a function.
"""
