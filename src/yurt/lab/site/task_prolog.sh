#!/bin/sh
echo "export SLURM_TMPDIR=/scratch/job-$SLURM_JOB_ID"
