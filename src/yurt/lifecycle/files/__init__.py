"""The files of runs: logs, metrics, results."""
