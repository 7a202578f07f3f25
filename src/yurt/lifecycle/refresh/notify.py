"""Notifies the user that a run has finished: on the desktop or by a command, once, by the first yurt that sees it."""

from __future__ import annotations

import os
import sys

from yurt.store import Entry, Store

DESKTOP = "desktop"


def fire(store: Store) -> None:
    """Send the notifications of all finished runs. Failures are not raised."""
    for run, how in store.take_notices():
        entry = store.get(run)
        if entry is not None:
            _notify(entry, how)


def _notify(entry: Entry, how: str) -> None:
    run, status = entry.run, entry.status
    message = f"{run.name or run.id} on {run.context}: {status.state}"
    variables = {
        "YURT_RUN_ID": run.id,
        "YURT_RUN_NAME": run.name,
        "YURT_CONTEXT": run.context,
        "YURT_STATE": status.state,
        "YURT_REASON": status.why.replace("\0", " "),
        "YURT_EXIT_CODE": "" if status.exit_code is None else str(status.exit_code),
    }
    command = _desktop_command(message, variables["YURT_REASON"]) if how == DESKTOP else ["sh", "-c", how]
    if command is None:
        sys.stderr.write(f"\ayurt: {message}\n")
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
        sys.stderr.write(f"yurt: {message}; the notification failed: {error.strerror}\n")


def _desktop_command(title: str, text: str) -> list[str] | None:
    """Return the command that shows a desktop notification; None if there is none."""
    import html
    import shutil

    if shutil.which("notify-send"):
        return ["notify-send", "--app-name=yurt", "--", title, html.escape(text, quote=False)]  # a desktop reads markup
    if sys.platform == "darwin":
        script = "on run args\ndisplay notification (item 2 of args) with title (item 1 of args)\nend run"
        return ["osascript", "-e", script, "--", title, text]
    return None
