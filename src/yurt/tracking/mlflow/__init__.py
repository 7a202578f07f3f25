"""Runs in MLflow: a store on this machine, or the user's server, that holds what yurt knows of them, exactly once."""
