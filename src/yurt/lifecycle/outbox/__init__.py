"""Plans and wishes on their way to their context."""
