"""Starts JupyterLab on a unix socket: `python jupyter_lab.py SOCKET TOKEN_FILE FOLDER`.

Neither it nor its kernels open a port, which every user of the node could reach; kernels of Python are started by
ipython_kernel.py. Settings of the user in `~/.jupyter` apply, except those that would undo this. The token is in no
argument and no variable of a process.
"""

import os
import sys
from importlib import import_module
from typing import Any, List

HERE = os.path.dirname(os.path.abspath(__file__))
KERNEL = os.path.join(HERE, "ipython_kernel.py")


def own_kernel(command: List[str]) -> List[str]:
    """Return the command that starts a kernel; the file beside this one runs the modules of those in Python."""
    if "python" not in os.path.basename(command[0]):
        return command
    at = 1
    while at < len(command) - 1 and command[at].startswith("-"):
        if command[at] == "-m":
            return [*command[:at], KERNEL, *command[at + 1 :]]
        at += 2 if command[at] in ("-X", "-W") else 1
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


def use_sockets(folder: str) -> None:
    """Let all kernels listen on sockets in a private folder, whatever the settings of the user say."""
    mixin: Any = import_module("jupyter_client.connect").ConnectionFileMixin
    write = mixin.write_connection_file

    def write_connection_file(self: Any, **more: Any) -> None:
        if self.transport != "ipc" or not self.ip.startswith(folder):
            self.transport = "ipc"
            self.ip = os.path.join(folder, "kernel-" + os.urandom(8).hex())
        write(self, **more)

    mixin.write_connection_file = write_connection_file


def options(socket: str, token: str, folder: str) -> List[str]:
    """Return the options that take precedence over settings of the user."""
    wanted = {
        "ServerApp.sock": socket,
        "ServerApp.sock_mode": "0600",
        "ServerApp.port": "8888",  # it has no effect, but another one is refused together with a socket
        "ServerApp.root_dir": folder,
        "ServerApp.token": token,
        "ServerApp.password": "",
        "ServerApp.certfile": "",
        "ServerApp.keyfile": "",
        "ServerApp.client_ca": "",
        "ServerApp.base_url": "/",
        "ServerApp.open_browser": "False",
        "KernelManager.transport": "ipc",
    }
    try:
        import_module("jupyter_server.auth.identity")
    except ImportError:  # before jupyter_server 2
        pass
    else:
        wanted["IdentityProvider.token"] = wanted.pop("ServerApp.token")
        wanted["PasswordIdentityProvider.hashed_password"] = wanted.pop("ServerApp.password")
        wanted["ServerApp.identity_provider_class"] = "jupyter_server.auth.identity.PasswordIdentityProvider"
    return ["--%s=%s" % item for item in wanted.items()] + (["--allow-root"] if os.getuid() == 0 else [])


def main(socket: str, token_file: str, folder: str) -> None:
    """Run JupyterLab."""
    runtime = os.environ["JUPYTER_RUNTIME_DIR"]
    with open(token_file) as stream:
        token = stream.read()
    replace_launcher()
    use_sockets(runtime)
    lab: Any = import_module("jupyterlab.labapp")
    sys.argv[1:] = []  # programs of extensions may read it
    sys.exit(lab.main(options(socket, token, folder)))


if __name__ == "__main__":
    if os.path.abspath(sys.path[0]) == HERE:
        del sys.path[0]  # programs must not import the modules beside this one
    main(*sys.argv[1:4])
