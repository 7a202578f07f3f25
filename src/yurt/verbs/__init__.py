"""One module per thing a user can ask for. Verbs return a Result; they never print and never exit."""
