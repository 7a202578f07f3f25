"""Updates the index from the contexts."""
