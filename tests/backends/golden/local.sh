#!/bin/sh
# yurt run 1nfjkdg-9k3rq on local: train.py --lr 0.1
# Submitted as: sh job.sh NONCE
# To run it in this terminal, without changing the run's record: sh job.sh

kind=local
sweep=
run=/home/me/data/projects/proj-0000/runs/1nfjkdg-9k3rq
code=/home/me/data/projects/proj-0000/snapshots/0658ce5b1b8a53bf414b477845a33bd6f9283ee7
subfolder=''
place=''
copy=
writable=''
launcher=
sbatch= # whether your script has #SBATCH lines
profile= # seconds for the profile of your login shell
container=''
unpack='' # environment to unpack onto the disk of each node
pyxis='' # the image for srun, if it starts the container
first_session= # seconds to wait for a session of `yurt shell`
next_session= # seconds to wait after a lost session
gpus=
imports=/home/me/data/node/MODULE # for Python: import yurt
limit=90 # seconds
requeues=0 # maximum restarts at its time limit, or when it asks for one
before=0 # seconds before the limit at which it is signalled to save
retries=0 # maximum restarts after a failure of the site
errors= # whether its own errors are retried too
follow= # whether the next start is a new job
lease=60 # seconds
grace=10 # seconds between TERM and KILL, without a scheduler
secrets=''
shares=go # shares of secrets, after the start

own_folders() { # whether no other user could have written to them
  own /home/me /home/me/data /home/me/data/projects /home/me/data/projects/proj-0000 /home/me/data/projects/proj-0000/runs /home/me/data/projects/proj-0000/runs/1nfjkdg-9k3rq /home/me/data/projects/proj-0000/runs/1nfjkdg-9k3rq/job.sh /home/me/data/projects/proj-0000/runs/1nfjkdg-9k3rq/data /home/me/data/projects/proj-0000/snapshots /home/me/data/projects/proj-0000/snapshots/0658ce5b1b8a53bf414b477845a33bd6f9283ee7 /home/me/data/node /home/me/data/node/MODULE
}

own_packages() { # prints where Python finds packages of your project, each with a colon after it
  :
}

environment() { # from your context and your flags
  :
}

# From here on the script is the same for every run.
