"""Life cycle of a run: plan it, submit it, refresh its status, read and fetch its files.

`select.py` finds the runs that a user names, `tasks.py` the tasks of a sweep.
"""
