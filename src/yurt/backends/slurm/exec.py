"""A command, or a terminal, as one more step of a running job, beside those that run."""

from __future__ import annotations

import shlex

from yurt.backends.shell.exec import ShellExec


class SlurmExec(ShellExec):
    """By srun, in the allocation that is there."""

    def entered(self, command: str, job: str, node: str, *, terminal: bool) -> str:
        # srun knows a task of an array only by the number it has as a job of its own.
        own = f'"$(squeue -h -j {shlex.quote(job)} -o %A)"'
        words = ["--quiet", "--overlap", "--nodes=1", "--ntasks=1", "--mem=0"]
        if node and not set(node) & set("[,"):
            words.append(f"--nodelist={node}")
        words += ["--pty"] if terminal else []
        return f"srun --jobid={own} " + shlex.join([*words, "sh", "-c", command])
