"""What yurt knows of a context: its facts, its folders, the backend it has."""
