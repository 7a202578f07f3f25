#!/bin/sh
# yurt run 1nfjkdg-9k3rq on big: train.py
# Submitted as: sbatch --job-name=yurt-1nfjkdg-9k3rq --comment=yurt:1nfjkdg-9k3rq --chdir=/scratch/alice/yurt/projects/proj-0000/runs/1nfjkdg-9k3rq --output=out.log --error=err.log --open-mode=append --signal=B:USR1@1 --partition=main --hold --requeue job.sh NONCE
# By hand, in this terminal, without touching the run's record: sh job.sh

kind=slurm
sweep=
run=/scratch/alice/yurt/projects/proj-0000/runs/1nfjkdg-9k3rq
code=''
subfolder=''
place=''
copy=
launcher=
container=''
gpus=
imports=/scratch/alice/yurt/node/MODULE # for Python: import yurt
limit=3600 # seconds
requeues=3 # how often it may be started again after its limit, or when it asks for it
before=120 # seconds before its limit at which it is told to save
retries=0 # how often it may be started again after a failure of its site's
errors= # whether an error of its own counts as one
follow= # whether its next start is another job
lease=60 # seconds
grace=10 # seconds between TERM and KILL, where no scheduler sees to it
secrets=''
shares=stay # those of secrets, once it has started

submit() { # a later start
  sbatch --parsable --job-name=yurt-1nfjkdg-9k3rq --comment=yurt:1nfjkdg-9k3rq --chdir=/scratch/alice/yurt/projects/proj-0000/runs/1nfjkdg-9k3rq --output=out.log --error=err.log --open-mode=append --signal=B:USR1@1 --partition=main --requeue "$@"
}

environment() { # as your context and your flags have it
  :
}

# From here on every run's script is the same.
