"""yurt's data types as values: contexts, runs, plans, states, paths. Pure."""
