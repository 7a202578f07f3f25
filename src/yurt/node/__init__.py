"""What runs inside a job: standard library only, Python 3.6, imports nothing of the rest."""
