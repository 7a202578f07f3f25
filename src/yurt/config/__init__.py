"""The user's configuration files: contexts, project settings, experiments."""
