"""Keeps the homes of several contexts in sync, with Unison."""
