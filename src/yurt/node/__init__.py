"""Code that runs inside a job: Python 3.6, standard library only, no imports from other packages of yurt."""
