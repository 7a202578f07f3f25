"""The MLflow store: the one of this machine, or the server that the user names. Imports MLflow only on use."""

from __future__ import annotations

import logging
import os
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

from yurt import private
from yurt.config import paths, secrets
from yurt.errors import RefusedError, UserError, YurtError
from yurt.lifecycle.refresh.track import INSTALL, is_installed
from yurt.model.addresses import mlflow_problem, without_password
from yurt.tracking.mlflow.failures import explained
from yurt.tracking.mlflow.journal import folder
from yurt.tracking.mlflow.names import REFUSED

QUIET = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "DO_NOT_TRACK": "true",
    "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
    "MLFLOW_ALLOW_FILE_STORE": "true",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
}
"""Variables of MLflow that yurt sets: nothing is sent to anyone but the store."""

USUAL = {"MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2", "MLFLOW_HTTP_REQUEST_TIMEOUT": "30"}
"""Variables of MLflow that the user may set: how long it tries to reach a server."""

TOKENS = ("MLFLOW_TRACKING_TOKEN", "MLFLOW_TRACKING_USERNAME", "MLFLOW_TRACKING_PASSWORD")


class Place:
    """An MLflow store."""

    def __init__(self, uri: str = "") -> None:
        """An empty URI is the store of this machine."""
        self.here = not uri
        self.uri = uri or f"sqlite:///{quote(str(database()), safe='/')}"
        self._client: Any = None

    @property
    def client(self) -> Any:
        """MLflow's client. UnreachableError and RefusedError, also if MLflow is not installed."""
        if self._client is None:
            check_installed()
            if self.here:
                _make_database()
            else:
                _give_tokens()
            os.environ.update(QUIET)
            for name, value in USUAL.items():
                os.environ.setdefault(name, value)
            logging.getLogger("mlflow").setLevel(logging.ERROR)
            logging.getLogger("alembic").setLevel(logging.ERROR)
            from mlflow.tracking import MlflowClient

            logging.getLogger("mlflow").setLevel(logging.ERROR)
            with explained(self.uri):
                self._client = MlflowClient(tracking_uri=self.uri, registry_uri=self.uri)
        return self._client

    def artifacts(self, experiment: str) -> str | None:
        """Return where the artifacts of an experiment go; None: the server decides."""
        name = REFUSED.sub("_", experiment).replace("/", "_").strip(".") or "_"
        return (folder() / "artifacts" / name).as_uri() if self.here else None


def database() -> Path:
    return folder() / "mlflow.db"


def _make_database() -> None:
    paths.make_private(folder() / "artifacts")
    os.close(private.opener(str(database()), os.O_RDWR | os.O_CREAT))
    # MLflow would name the current folder as the place of artifacts of its own experiment "Default".
    os.environ["_MLFLOW_SERVER_ARTIFACT_ROOT"] = (folder() / "artifacts").as_uri()


def check_installed() -> None:
    if not is_installed():
        raise RefusedError("the Python package mlflow is not installed", code="program-missing", hint=INSTALL)


def checked_uri(uri: str) -> str:
    """Return a URI for `--to`; a relative path of SQLite becomes absolute. UserError if it is none."""
    scheme, _, path = uri.partition(":///")
    if scheme == "sqlite" and path and not path.startswith("/"):
        uri = f"sqlite:///{quote(str(Path(path).absolute()), safe='/')}"
    if problem := mlflow_problem(uri):
        raise UserError(
            f"--to {problem}, not '{without_password(uri)}'",
            code="usage",
            hint="for example: `--to https://mlflow.example`",
        )
    return uri.rstrip("/") if uri.startswith("http") else uri


def _give_tokens() -> None:
    """Set the token for the server, from the environment or the keyring, for MLflow in this process."""
    if any(os.environ.get(name) for name in TOKENS):
        return
    for name in TOKENS:
        with suppress(YurtError):  # without a keyring: a server that needs no token
            value = secrets.read(name)
            if value is not None:
                os.environ[name] = value.decode()
