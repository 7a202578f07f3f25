"""yurt's data types as values: contexts, runs, plans, states, paths. Pure.

`layout.py` names every file of a run folder, for Python and for sh. `restart_policy.py` is the table that decides when
a run is restarted.
"""
