"""Files of the user's: contexts, project settings, and where they live."""
