"""Life cycle of a run: plan it, submit it, refresh its status, read and fetch its files."""
