"""Runs a command or a terminal as an additional step of a running job."""

from __future__ import annotations

import os
import shlex

from yurt.backends.shell.exec import NO_JOB, ShellExec
from yurt.model import layout

ENTER = """\
set -- $(queue -j {job} -o '%A %B') # srun accepts an array task only by its own job id
[ $# -eq 2 ] || exit 143 # the job has ended
umask 077
( # if the node dies, srun does not notice
  while sleep {pause} && kill -0 $$; do
    state=$(queue -j "$1" -o %t 2>&1)
    case $?,$state in 0, | 0,PD | *'Invalid job id'*) pkill -KILL -P $$ srun ;; esac
  done
) < /dev/null > /dev/null 2>&1 &
watch=$!
srun --jobid="$1" --nodelist="$2" --quiet --overlap --nodes=1 --ntasks=1 --mem=0 {pty} sh -c {step}
code=$?
kill "$watch" 2> /dev/null
[ "$code" -ne 0 ] || read -r code < {file}
rm -f {file}
exit "$code"
"""
"""Enters the node that runs the job script."""

PAUSE = 60
"""Seconds between two queries whether the job is still running."""

STEP = "trap : INT QUIT; ({command}); code=$?; echo $code > {file} || exit $code"
"""The exit code is in a file: srun would print an error about any that is not 0."""


FIND = """\
set -- $(queue -j {job} -o '%A %B')
[ $# -eq 2 ] || exit {no_job}
set -- srun --jobid="$1" --nodelist="$2" --quiet --overlap --nodes=1 --ntasks=1 --mem=0
"""
"""Sets the arguments to the command that starts a step on the node of the job script."""


class SlurmExec(ShellExec):
    """Uses srun in the existing allocation."""

    def entered(self, command: str, job: str, folder: str, *, terminal: bool) -> str:
        file = shlex.quote(f"{folder}/{layout.CODE_OF_STEP}{os.urandom(8).hex()}")
        step = STEP.format(command=command, file=file)
        pty = "--pty" if terminal else ""
        return ENTER.format(pause=PAUSE, job=shlex.quote(job), pty=pty, step=shlex.quote(step), file=file)

    def asked(self, command: str, job: str) -> str:
        return self._find(job) + f'"$@" sh -c {shlex.quote(command)}'

    def relayed(self, command: str, job: str) -> str:
        return self._find(job) + f'exec "$@" --unbuffered --input=0 sh -c {shlex.quote(f"exec {command}")}'

    def _find(self, job: str) -> str:
        return FIND.format(job=shlex.quote(job), no_job=NO_JOB)
