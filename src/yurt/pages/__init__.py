"""Web pages of this machine that only the user can open."""
