#!/bin/sh
# Runs after the job's last process on this node: removes the job's folder.
case $SLURM_JOB_ID in
  '' | *[!0-9]*) exit 0 ;;
esac
rm -rf "/scratch/job-$SLURM_JOB_ID"
