"""What a service runs: JupyterLab, TensorBoard, MLflow, or a command of the user."""

import os
import shutil
import subprocess
from typing import Any, Dict, List, NamedTuple

from yurt.node.files import NodeError
from yurt.node.service.place import Place

HERE = os.path.dirname(os.path.abspath(__file__))
PORT, SOCKET = "{port}", "{socket}"

INSTALLED = "import sys; from importlib.util import find_spec; sys.exit(find_spec(sys.argv[1]) is None)"


class Program(NamedTuple):
    """A command and its variables."""

    argv: List[str]
    """PORT stands for the port, if it listens on one; then it does not use the socket."""
    variables: Dict[str, str] = {}
    token: str = ""
    """The password of the program, if it has one."""

    @property
    def listens_on_port(self) -> bool:
        return any(PORT in word for word in self.argv)


def program(config: Dict[str, Any], place: Place) -> Program:
    """Return what to run for the configuration of a service. NodeError if it is not installed."""
    make = {"jupyter": _jupyter, "tensorboard": _tensorboard, "mlflow": _mlflow}.get(str(config["program"]))
    if make is not None:
        return make(config, place)
    return Program([str(word).replace(SOCKET, place.socket) for word in config["words"]])


def _jupyter(config: Dict[str, Any], place: Place) -> Program:
    python = _python("jupyterlab", "JupyterLab")
    token = os.urandom(24).hex()
    argv = [
        python,
        os.path.join(HERE, "jupyter_lab.py"),
        "--no-browser",
        "--ServerApp.sock=" + place.socket,
        "--ServerApp.sock_mode=0600",
        "--ServerApp.root_dir=" + (str(config.get("folder") or "") or os.getcwd()),
        # The ports of kernels would be open to every user of the node.
        "--KernelManager.transport=ipc",
        *(["--allow-root"] if os.getuid() == 0 else []),
    ]
    runtime = os.path.join(place.folder, "run")
    os.mkdir(runtime, 0o700)
    # Jupyter writes the token and the keys of kernels to this folder, which is on the shared disk by default.
    return Program(argv, {"JUPYTER_TOKEN": token, "JUPYTER_RUNTIME_DIR": runtime}, token)


def _tensorboard(config: Dict[str, Any], place: Place) -> Program:
    python = _python("tensorboard", "TensorBoard")
    folder = str(config.get("folder") or "")
    if not folder:
        folder = os.path.join(place.folder, "logs")
        os.mkdir(folder, 0o700)
        for name, path in dict(config.get("links") or {}).items():
            os.symlink(path, os.path.join(folder, name))
    elif not os.path.isdir(folder):
        raise NodeError("the folder %s does not exist" % folder)
    return Program([python, os.path.join(HERE, "tensorboard_server.py"), place.socket, folder, "15"])


def _mlflow(config: Dict[str, Any], place: Place) -> Program:
    python = _python("mlflow", "MLflow")
    store = str(config["folder"])
    if not os.path.exists(store):
        raise NodeError("%s does not exist" % store)
    uri = store if os.path.isdir(store) else "sqlite:///" + os.path.abspath(store)
    argv = [python, "-m", "mlflow", "server", "--backend-store-uri", uri, "--workers", "1"]
    variables = {"MLFLOW_ALLOW_FILE_STORE": "true", "MLFLOW_DISABLE_TELEMETRY": "true"}
    # Its socket is 0666; the folder is 0700.
    return Program([*argv, "--uvicorn-opts", "--uds " + place.socket], variables)


def _python(module: str, name: str) -> str:
    """Return the Python of the environment. NodeError if it does not have a module."""
    python = shutil.which("python") or shutil.which("python3") or "python3"
    try:
        found = subprocess.run([python, "-c", INSTALLED, module], check=False, stdin=subprocess.DEVNULL).returncode == 0
    except OSError as error:
        raise NodeError("%s cannot be started: %s" % (python, error.strerror)) from None
    if not found:
        raise NodeError(
            "%s is not installed for %s: add the package %s to the environment of your project, or choose another one"
            " with --env" % (name, python, module)
        )
    return python
