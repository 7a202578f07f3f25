"""Turns a user's request into a plan."""
