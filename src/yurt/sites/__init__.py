"""What yurt knows of a context: its facts, its folders, its backend."""
