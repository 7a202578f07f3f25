"""Addresses that users give. Pure."""

from __future__ import annotations


def without_password(uri: str) -> str:
    """Return a URI without the name and the password in it."""
    scheme, mark, rest = uri.partition("://")
    place, slash, path = rest.partition("/")
    return f"{scheme}{mark}{place.rpartition('@')[2]}{slash}{path}" if mark else uri


SERVERS = ("http", "https")
DATABASES = ("postgresql", "mysql", "mssql")


def mlflow_problem(uri: str) -> str:
    """Return why a text is not the address of an MLflow store, to follow its key; empty if it is one."""
    scheme, colon, rest = uri.partition(":")
    kind = scheme.partition("+")[0]
    known = kind in (*SERVERS, *DATABASES, "sqlite", "file", "databricks") and bool(colon and rest)
    if not known and uri != "databricks":
        return "must be the URI of an MLflow store"
    if kind == "sqlite" and not rest.startswith("////"):
        return "must have an absolute path, after four slashes"
    if kind == "file" and not rest.startswith("///"):
        return "must have an absolute path, after three slashes"
    return ""


def has_password(uri: str) -> bool:
    """Whether a URI contains a password."""
    return ":" in uri.partition("://")[2].partition("/")[0].rpartition("@")[0]
