"""What runs inside a job, whatever kind of context it is on: job.sh, its data, its gate."""
