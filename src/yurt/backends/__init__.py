"""What each kind of context can do, by capability."""
