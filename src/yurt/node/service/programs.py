"""What a service runs: JupyterLab, TensorBoard, MLflow, or a command of the user."""

import os
import shutil
import subprocess
from typing import Any, Dict, List, NamedTuple, Sequence, Tuple

from yurt.node.files import NodeError
from yurt.node.service.place import Place

HERE = os.path.dirname(os.path.abspath(__file__))
PORT, SOCKET = "{port}", "{socket}"

SERVER = (
    "ARTIFACTS_ONLY",
    "EXPOSE_PROMETHEUS",
    "GUNICORN_OPTS",
    "HOST",
    "PORT",
    "SERVER_",
    "STATIC_PREFIX",
    "TRACKING_URI",
)
"""Variables of MLflow that would change how its server listens, or whom it answers."""

FIND = """
import sys
from importlib.util import find_spec
if find_spec(sys.argv[1]) is None:
    sys.exit(1)
try:
    from importlib.metadata import version
    print(version(sys.argv[1]))
except Exception:
    pass
"""
"""Exits with 1 if a module is not installed; else prints its version, if that is known."""

REFUSAL = (
    "node %s does not let programs have a network of their own, so that every user of the node could reach the port: "
)


class Program(NamedTuple):
    """A command and its variables."""

    argv: List[str]
    listens_on_port: bool = False
    """Then PORT in the command stands for the port; else it listens on the socket."""
    variables: Dict[str, str] = {}
    without: Sequence[str] = ()
    """Starts of the names of variables that it must not have: they would change where it listens."""
    token: str = ""
    """The password of the program, if it has one."""
    refusal: str = REFUSAL + "let the program listen on {socket}, or allow it with --open-port"
    """Why it is not started on a node, which is filled in, where its port would be open to others."""

    def environment(self, own: Dict[str, str]) -> Dict[str, str]:
        """Return the variables of the program, given those of the job."""
        kept = {name: value for name, value in own.items() if not name.startswith(tuple(self.without))}
        return dict(kept, **self.variables)


def program(config: Dict[str, Any], place: Place) -> Program:
    """Return what to run for the configuration of a service. NodeError if it is not installed."""
    make = {"jupyter": _jupyter, "tensorboard": _tensorboard, "mlflow": _mlflow}.get(str(config["program"]))
    if make is not None:
        return make(config, place)
    words = [str(word) for word in config["words"]]
    return Program([word.replace(SOCKET, place.socket) for word in words], any(PORT in word for word in words))


def _jupyter(config: Dict[str, Any], place: Place) -> Program:
    python, _version = _python("jupyterlab", "JupyterLab")
    folder = str(config.get("folder") or "") or os.getcwd()
    if not os.path.isdir(folder):
        raise NodeError("the folder %s does not exist" % folder)
    runtime = os.path.join(place.folder, "run")
    os.mkdir(runtime, 0o700)
    return Program(
        [python, os.path.join(HERE, "jupyter_lab.py"), place.socket, place.token, folder],
        # Jupyter writes its token and the keys of kernels to this folder, which is on the shared disk by default.
        variables={"JUPYTER_RUNTIME_DIR": runtime},
        without=("JUPYTER_TOKEN", "JUPYTER_PORT"),
        token=os.urandom(24).hex(),
    )


def _tensorboard(config: Dict[str, Any], place: Place) -> Program:
    python, _version = _python("tensorboard", "TensorBoard")
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
    python, version = _python("mlflow", "MLflow")
    store = str(config["folder"])
    if not os.path.exists(store):
        raise NodeError("%s does not exist" % store)
    uri = store if os.path.isdir(store) else "sqlite:///" + os.path.abspath(store)
    argv = [python, "-m", "mlflow", "server", "--backend-store-uri", uri, "--workers", "1"]
    variables = {"MLFLOW_ALLOW_FILE_STORE": "true", "MLFLOW_DISABLE_TELEMETRY": "true"}
    without = ("GUNICORN_", "UVICORN_", *("MLFLOW_" + name for name in SERVER))
    if version.partition(".")[0] in ("1", "2"):
        refusal = REFUSAL + "use MLflow 3, which can listen on a socket"
        return Program([*argv, "--host", "127.0.0.1", "--port", PORT], True, variables, without, refusal=refusal)
    # Its socket is 0666; the folder is 0700.
    return Program([*argv, "--uvicorn-opts", "--uds " + place.socket], False, variables, without)


def _python(module: str, name: str) -> Tuple[str, str]:
    """Return the Python of the environment, and the version of a module. NodeError if it does not have the module."""
    python = shutil.which("python") or shutil.which("python3")
    if python is None:
        raise NodeError("there is no Python on this node: choose an environment with --env")
    try:
        found = subprocess.run(
            [python, "-c", FIND, module], check=False, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE
        )
    except OSError as error:
        raise NodeError("%s cannot be started: %s" % (python, error.strerror)) from None
    if found.returncode:
        raise NodeError(
            "%s is not installed for %s: add the package %s to the environment of your project, or choose another one"
            " with --env" % (name, python, module)
        )
    return python, found.stdout.decode(errors="replace").strip()
