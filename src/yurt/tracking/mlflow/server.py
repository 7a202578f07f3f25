"""MLflow's own server and page for the store of this machine, on a unix socket in a private folder."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from yurt import private
from yurt.errors import RefusedError
from yurt.tracking.mlflow import journal
from yurt.tracking.mlflow.place import QUIET, Place

PATIENCE = 10.0
"""Seconds that the server has to end."""

OWN = ("MLFLOW_TRACKING_URI", "MLFLOW_REGISTRY_URI", "MLFLOW_RUN_ID", "MLFLOW_EXPERIMENT_ID", "MLFLOW_EXPERIMENT_NAME")
"""Variables of the user that are for other stores."""


# The pipe to its input is closed if yurt is killed: then the server ends too.
WATCHED = '{ "$@" < /dev/null; kill -TERM "-$$"; } & read -r _end; kill -TERM "-$$"'


@contextmanager
def serving(place: Place, socket: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run the server while the context lasts. It needs some seconds to listen."""
    log = journal.folder() / "server.log"
    argv = [sys.executable, "-m", "mlflow", "server", "--workers", "1", "--backend-store-uri", place.uri]
    argv += ["--default-artifact-root", (journal.folder() / "artifacts").as_uri()]
    argv += ["--uvicorn-opts", f"--uds {shlex.quote(str(socket))} --log-level warning"]
    environment = {name: value for name, value in os.environ.items() if name not in OWN}
    # PYTHONSAFEPATH: neither the server nor what it starts imports modules from the current folder.
    environment |= {**QUIET, "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false", "PYTHONSAFEPATH": "1"}
    with open(log, "wb", opener=private.opener) as output:
        process = subprocess.Popen(
            ["sh", "-c", WATCHED, "sh", *argv],
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=output,
            env=environment,
            cwd=journal.folder(),
            start_new_session=True,
            umask=0o077,
        )
    try:
        yield process
    finally:
        _stop(process)


def _stop(process: subprocess.Popen[bytes]) -> None:
    """End the server and the processes that it started."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
    try:
        process.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def ended(process: subprocess.Popen[bytes]) -> RefusedError:
    """Return the error for a server that has ended."""
    log = journal.folder() / "server.log"
    try:
        lines = [line.strip() for line in log.read_text(errors="replace").splitlines() if line.strip()]
    except OSError:
        lines = []
    why = lines[-1] if lines else f"exit code {process.returncode}"
    return RefusedError(f"the server of MLflow has ended: {why}", code="mlflow-refused", hint=f"see {log}")
