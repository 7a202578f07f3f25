"""What yurt knows of a context: its settings, the facts of its site, its folders, the way to it."""
