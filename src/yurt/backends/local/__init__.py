"""This machine as a place to run: processes that wait for a slot, then run job.sh."""
