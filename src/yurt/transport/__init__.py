"""Where commands run, and how files get there: this machine, or a host reached by ssh.

This file imports nothing: `queue_prefetch.py` and `session_ahead.py` are imported before anything else.
"""
