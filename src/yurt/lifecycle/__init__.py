"""The life of a run: planned, sent, looked at, brought home."""
