#!/bin/sh
# yurt run 1nfjkdg-9k3rq on big: python -m pkg.train
# Submitted as: sbatch --job-name=yurt-1nfjkdg-9k3rq --comment=yurt:1nfjkdg-9k3rq --chdir=/scratch/alice/yurt/projects/proj-0000/runs/1nfjkdg-9k3rq --output=out.log --error=err.log --open-mode=append --partition=main --time=720 --gres=gpu:1 --no-requeue job.sh NONCE
# By hand, in this terminal, without touching the run's record: sh job.sh

kind=slurm
sweep=
run=/scratch/alice/yurt/projects/proj-0000/runs/1nfjkdg-9k3rq
code=/scratch/alice/yurt/projects/proj-0000/snapshots/0658ce5b1b8a53bf414b477845a33bd6f9283ee7
subfolder=''
place=''
copy=yes
launcher=
container=/home/alice/images/torch.sif
gpus=1
imports=/scratch/alice/yurt/node/MODULE # for Python: import yurt
limit=43200 # seconds
requeues=0 # how often it may be started again after its limit, or when it asks for it
before=0 # seconds before its limit at which it is told to save
retries=0 # how often it may be started again after a failure of its site's
errors= # whether an error of its own counts as one
follow= # whether its next start is another job
lease=60 # seconds
grace=10 # seconds between TERM and KILL, where no scheduler sees to it
secrets=''
shares=go # those of secrets, once it has started

environment() { # as your context and your flags have it
  use_conda torch
}

# From here on every run's script is the same.
