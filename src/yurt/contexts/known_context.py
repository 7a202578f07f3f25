"""Checks the name of a context that selects runs."""

from __future__ import annotations

import os

from yurt.config import paths
from yurt.store import Store


def check_context(name: str) -> None:
    """NotFoundError if there is neither such a context nor a run on it: runs stay when their context is removed.

    UserError if yurt cannot use the context. The configuration is only read if the index has no such run.
    """
    file = f"{paths.data_folder()}/yurt.db"
    if os.path.exists(file):
        with Store(file) as index:
            if index.has_runs(name):
                return
    from yurt.config import contexts

    contexts.site(name)
