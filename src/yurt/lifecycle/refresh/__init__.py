"""Brings the index up to date with what contexts say."""
