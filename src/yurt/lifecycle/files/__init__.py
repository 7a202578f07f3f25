"""What runs wrote: logs, metrics, results."""
