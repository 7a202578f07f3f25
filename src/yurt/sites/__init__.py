"""Access to the site of a context: its facts, its folders, its backend."""
