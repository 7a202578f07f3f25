"""How the suite runs: its environment, its order over workers, what it prints."""
