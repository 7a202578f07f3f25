"""Function calls on this machine, in processes that stay and take the next call. See dispatch.py."""
