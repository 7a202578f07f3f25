#!/bin/sh
# yurt run 1nfjkdg-9k3rq on big: train.py
# Submitted as: sbatch --job-name=yurt-1nfjkdg-9k3rq --comment=yurt:1nfjkdg-9k3rq --chdir=/scratch/alice/yurt/projects/proj-0000/runs/1nfjkdg-9k3rq --output=out.log --error=err.log --open-mode=append --signal=B:USR1@1 --partition=main --hold --requeue job.sh NONCE
# To run it in this terminal, without changing the run's record: sh job.sh

kind=slurm
sweep=
run=/scratch/alice/yurt/projects/proj-0000/runs/1nfjkdg-9k3rq
code=''
subfolder=''
place=''
copy=
writable=''
launcher=
sbatch= # whether your script has #SBATCH lines
profile=20 # seconds for the profile of your login shell
container=''
unpack='' # environment to unpack onto the disk of each node
pyxis='' # the image for srun, if it starts the container
first_session= # seconds to wait for a session of `yurt shell`
next_session= # seconds to wait after a lost session
gpus=
imports=/scratch/alice/yurt/node/MODULE # for Python: import yurt
limit=3600 # seconds
requeues=3 # maximum restarts at its time limit, or when it asks for one
before=120 # seconds before the limit at which it is signalled to save
retries=0 # maximum restarts after a failure of the site
errors= # whether its own errors are retried too
follow= # whether the next start is a new job
lease=60 # seconds
grace=10 # seconds between TERM and KILL, without a scheduler
secrets=''
shares=stay # shares of secrets, after the start

submit() { # a later start
  sbatch --parsable --job-name=yurt-1nfjkdg-9k3rq --comment=yurt:1nfjkdg-9k3rq --chdir=/scratch/alice/yurt/projects/proj-0000/runs/1nfjkdg-9k3rq --output=out.log --error=err.log --open-mode=append --signal=B:USR1@1 --partition=main --requeue "$@"
}

own_folders() { # whether no other user could have written to them
  own /scratch/alice /scratch/alice/yurt /scratch/alice/yurt/projects /scratch/alice/yurt/projects/proj-0000 /scratch/alice/yurt/projects/proj-0000/runs /scratch/alice/yurt/projects/proj-0000/runs/1nfjkdg-9k3rq /scratch/alice/yurt/projects/proj-0000/runs/1nfjkdg-9k3rq/job.sh /scratch/alice/yurt/projects/proj-0000/runs/1nfjkdg-9k3rq/data /scratch/alice/yurt/node /scratch/alice/yurt/node/MODULE
}

own_packages() { # prints where Python finds packages of your project, each with a colon after it
  :
}

environment() { # from your context and your flags
  :
}

# From here on the script is the same for every run.
