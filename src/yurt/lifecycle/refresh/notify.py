"""Tells the user that a run has ended: on the desktop or by a command, once, by whichever yurt sees it first."""

from __future__ import annotations

import os
import sys

from yurt.store import Entry, Store

DESKTOP = "desktop"


def fire(store: Store) -> None:
    """Tell of every run that has ended and of which somebody wants to know. Nothing that goes wrong here is raised."""
    for run, how in store.take_notices():
        entry = store.get(run)
        if entry is not None:
            _tell(entry, how)


def _tell(entry: Entry, how: str) -> None:
    run, status = entry.run, entry.status
    what = f"{run.name or run.id} on {run.context}: {status.state}"
    variables = {
        "YURT_RUN_ID": run.id,
        "YURT_RUN_NAME": run.name,
        "YURT_CONTEXT": run.context,
        "YURT_STATE": status.state,
        "YURT_REASON": status.reason,
        "YURT_EXIT_CODE": "" if status.exit_code is None else str(status.exit_code),
    }
    command = _on_the_desktop(what, status.reason) if how == DESKTOP else ["sh", "-c", how]
    if command is None:
        sys.stderr.write(f"\ayurt: {what}\n")
        return
    import subprocess

    try:
        subprocess.Popen(
            command,
            env={**os.environ, **variables},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError as error:
        sys.stderr.write(f"yurt: {what}; it could not be told otherwise: {error.strerror}\n")


def _on_the_desktop(title: str, text: str) -> list[str] | None:
    """The program that shows a notice here; None if there is none."""
    import shutil

    if shutil.which("notify-send"):
        return ["notify-send", "--app-name=yurt", "--", title, text]
    if sys.platform == "darwin":
        script = "on run words\ndisplay notification (item 2 of words) with title (item 1 of words)\nend run"
        return ["osascript", "-e", script, title, text]
    return None
