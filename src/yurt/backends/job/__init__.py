"""What runs inside a job on any kind of context: job.sh, its data and its gate."""
