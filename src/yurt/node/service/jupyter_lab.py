"""Starts JupyterLab so that its kernels open no port: those of Python are started by ipython_kernel.py."""

import os
import sys
from importlib import import_module
from typing import Any, List

HERE = os.path.dirname(os.path.abspath(__file__))
KERNEL = os.path.join(HERE, "ipython_kernel.py")
LAUNCHER = "ipykernel_launcher"


def own_kernel(command: List[str]) -> List[str]:
    """Return the command that starts a kernel; that of ipykernel is replaced by the file beside this one."""
    for at in range(len(command) - 1):
        if command[at] == "-m" and command[at + 1] == LAUNCHER:
            return [*command[:at], KERNEL, *command[at + 2 :]]
    return command


def replace_launcher() -> None:
    """Let Jupyter start kernels with `own_kernel`."""
    starts: Any
    try:
        starts = import_module("jupyter_client.provisioning.local_provisioner")
    except ImportError:  # before jupyter_client 7
        starts = import_module("jupyter_client.manager")
    launch = starts.launch_kernel

    def launch_kernel(command: List[str], *words: Any, **more: Any) -> Any:
        return launch(own_kernel(command), *words, **more)

    starts.launch_kernel = launch_kernel


if __name__ == "__main__":
    if os.path.abspath(sys.path[0]) == HERE:
        del sys.path[0]  # programs must not import the modules beside this one
    replace_launcher()
    lab: Any = import_module("jupyterlab.labapp")
    sys.exit(lab.main())
