"""A Hydra launcher that runs the jobs of a multirun on a context: `hydra/launcher=yurt`.

It does not have to be installed on the site: the code that runs there is pickled by value.
"""
