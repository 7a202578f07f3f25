"""One module for each command of the CLI. Verbs return a Result; they never print and never exit.

`steps.py` lists the steps that advance pending work.
"""
