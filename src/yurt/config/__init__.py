"""The user's files: contexts, project settings."""
