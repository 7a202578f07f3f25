"""Runs on this machine: processes that wait for a slot, then run job.sh."""
