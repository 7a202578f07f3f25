#!/bin/sh
# Runs before a job starts on a node: creates the job's folder on the node's disk.
# A full disk must not fail the prolog: Slurm would drain the node.
folder=/scratch/job-$SLURM_JOB_ID
umask 077
mkdir -p "$folder" && chown "$SLURM_JOB_UID" "$folder"
exit 0
