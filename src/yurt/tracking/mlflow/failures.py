"""MLflow's exceptions as errors of yurt: the store cannot be reached, or it refuses."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from yurt.errors import RefusedError, UnreachableError, YurtError
from yurt.model.addresses import without_password

CODE = re.compile(r"failed with error code (\d+)")
LONGEST = 200


@contextmanager
def explained(uri: str) -> Iterator[None]:
    """Raise UnreachableError or RefusedError instead of MLflow's exceptions."""
    from mlflow.exceptions import MlflowException
    from sqlalchemy.exc import SQLAlchemyError

    try:
        yield
    except MlflowException as error:
        raise _error(uri, str(error.message), str(error.error_code)) from None
    except SQLAlchemyError as error:
        raise RefusedError(
            f"the MLflow store {without_password(uri)} cannot be used: {_short(str(error))}", code="mlflow-refused"
        ) from None


def _error(uri: str, message: str, code: str) -> YurtError:
    place = without_password(uri)
    found = CODE.search(message)
    status = int(found[1]) if found else 0
    if status in (401, 403) or code in ("UNAUTHENTICATED", "PERMISSION_DENIED", "CUSTOMER_UNAUTHORIZED"):
        return RefusedError(
            f"the MLflow server {place} refuses access",
            code="mlflow-refused",
            hint="set its token with `yurt secret set MLFLOW_TRACKING_TOKEN`, or name and password as"
            " MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD",
        )
    lost = "failed with exception" in message or "Max retries exceeded" in message
    if lost or status >= 500 or code in ("TEMPORARILY_UNAVAILABLE", "REQUEST_LIMIT_EXCEEDED"):
        why = f"it answered {status}" if status else _reason(message)
        return UnreachableError(
            f"the MLflow server {place} cannot be reached: {why}",
            code="mlflow-unreachable",
            hint="what is sent stays; run the command again to send the rest",
        )
    return RefusedError(f"the MLflow store {place} refused: {_short(message)}", code="mlflow-refused")


REASONS = {
    "Name or service not known": "its name cannot be resolved",
    "Failed to resolve": "its name cannot be resolved",
    "name resolution": "its name cannot be resolved",
    "Connection refused": "it refuses connections",
    "timed out": "it did not respond in time",
    "CERTIFICATE_VERIFY_FAILED": "its certificate cannot be verified",
    "No route to host": "there is no network route to it",
    "Network is unreachable": "there is no network route to it",
}


def _reason(message: str) -> str:
    return next((text for part, text in REASONS.items() if part in message), _short(message))


def _short(message: str) -> str:
    text = " ".join(message.split())
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"
