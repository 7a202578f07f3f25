"""Schedulers: what each can be asked, and how to read its answers."""
