"""What a user can ask for. Verbs return data; they never print and never exit."""
