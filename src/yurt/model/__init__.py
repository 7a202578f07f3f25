"""The words of yurt as values: contexts, runs, plans, states, paths. Pure."""
