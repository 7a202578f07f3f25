"""Addresses of MLflow stores."""

from __future__ import annotations

import pytest

from yurt.model.addresses import has_password, mlflow_problem, without_password
from yurt.model.context_check import check_file


@pytest.mark.parametrize(
    "uri",
    [
        "https://mlflow.example",
        "http://127.0.0.1:5000",
        "sqlite:////shared/mlflow.db",
        "file:///shared/mlruns",
        "postgresql+psycopg2://host/db",
        "databricks",
        "databricks://profile",
    ],
)
def test_stores(uri: str) -> None:
    assert mlflow_problem(uri) == "" and not has_password(uri)


@pytest.mark.parametrize(
    ("uri", "problem"),
    [
        ("foo", "must be the URI of an MLflow store"),
        ("ftp://foo", "must be the URI of an MLflow store"),
        ("https:", "must be the URI of an MLflow store"),
        ("sqlite:///rel.db", "must have an absolute path, after four slashes"),
        ("file:rel", "must have an absolute path, after three slashes"),
        ("https://me:secret@mlflow.example/x", "contains a password, which would be recorded"),
    ],
)
def test_refused_in_a_context(uri: str, problem: str) -> None:
    """A relative path would be one of the process that sends runs in the background."""
    _found, (fault,) = check_file({"contexts": {"big": {"type": "local", "mlflow_uri": uri}}})
    assert fault.path == ("contexts", "big", "mlflow_uri") and fault.problem.startswith(problem)


def test_passwords_are_not_shown() -> None:
    assert has_password("https://me:secret@host/x") and not has_password("https://me@host:5000/a:b@c")
    assert without_password("https://me:secret@host/x") == "https://host/x"
