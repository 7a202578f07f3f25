"""Words that Slurm prints differently from version to version, each with the versions that print it.

What differs and needs no table, since yurt avoids it, is in docs/reference/slurm.md. Other words are shown as they are.
"""

from __future__ import annotations

NOTHING = {
    "": "all",
    "(null)": "all: scontrol",
    "N/A": "all: squeue",
    "Unknown": "22.05: sacct, of a job that never started; all: scontrol",
    "None": "24.11, 26.05: sacct, of a job that never started; all: squeue, of a job without a reason",
}
"""What stands for no value."""

KILLED_FOR_MEMORY = {
    r"^slurmstepd[^ ]*: error:.* exceeded .*memory limit": "22.05, 24.11",
    r"^\[[^]]*\] error:.* exceeded .*memory limit": "26.05",
}
"""Lines in the errors of a job that Slurm itself killed, as extended regular expressions that ignore case."""

TEST_SUBMISSION = {
    r"\bJob (\d+) to start at (\S+) a(?: using (\d+) processors)?(?: on (?:nodes? )?([^\s|]+))?": "26.05",
    r"\bJob (\d+) to start at (\S+)(?: using (\d+) processors)?(?: on (?:nodes? )?([^\s|]+))?": "22.05, 24.11",
}
"""What `sbatch --test-only` answers: the job, its start, its CPUs and nodes. The first that matches counts."""
