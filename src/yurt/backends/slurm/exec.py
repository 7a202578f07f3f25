"""Runs a command or a terminal as an additional step of a running job."""

from __future__ import annotations

import shlex

from yurt.backends.shell.exec import ShellExec


class SlurmExec(ShellExec):
    """Uses srun in the existing allocation."""

    def entered(self, command: str, job: str, node: str, *, terminal: bool) -> str:
        # srun accepts an array task only by its own job id.
        own = f'"$(squeue -h -j {shlex.quote(job)} -o %A)"'
        words = ["--quiet", "--overlap", "--nodes=1", "--ntasks=1", "--mem=0"]
        if node and not set(node) & set("[,"):
            words.append(f"--nodelist={node}")
        words += ["--pty"] if terminal else []
        return f"srun --jobid={own} " + shlex.join([*words, "sh", "-c", command])
