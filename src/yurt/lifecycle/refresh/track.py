"""Sends finished runs with the setting `track` to MLflow: starts a process for it, which the command does not wait for.

Must stay cheap: every refresh calls it.
"""

from __future__ import annotations

import sys
import time
from contextlib import suppress

from yurt import private
from yurt.store import Store

LEASE = 600.0
"""Seconds after which another command may start a process for the same runs."""

MISSING = 3600.0
"""Seconds until the next look whether MLflow is installed."""

INSTALL = "install it with `pip install 'yurt[mlflow]'`"


def is_installed() -> bool:
    """Whether MLflow is installed, without importing it."""
    from importlib.util import find_spec

    return all(find_spec(name) is not None for name in ("mlflow", "sqlalchemy"))


def begin(store: Store) -> list[str]:
    """Start to send the runs that are due. Return warnings; failures are retried by a later command."""
    now = time.time()
    due = [each.run for each in store.to_track(now)]
    if not due:
        return []
    if not is_installed():
        store.track_later(due, now + MISSING)
        new = store.take_unwarned(due)
        if not new:
            return []
        names = ", ".join(new[:3]) + (f" and {len(new) - 3} more" if len(new) > 3 else "")
        return [f"finished but not tracked: {names}, because MLflow is not installed; {INSTALL}"]
    store.track_later(due, now + LEASE)
    _start()
    return []


def _start() -> None:
    import subprocess

    from yurt.config import paths

    folder = paths.data_home() / "mlflow"
    with suppress(OSError):  # a later command tries again
        paths.make_private(folder)
        with open(folder / "track.log", "wb", opener=private.opener) as log:
            subprocess.Popen(
                [sys.executable, "-P", "-m", "yurt", "mlflow", "--due"],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
                start_new_session=True,
            )
