"""The command with which a user starts a finished run again: only runs of a command can be retried. Pure."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping

from yurt.model.run import Run

RETRY = "`yurt retry RUN`"
"""What texts of advice contain where `again` belongs."""

_PLACES = re.compile(rf"\{{(\w+)\}}|{RETRY}|\bRUN\b")


def again(run: Run, options: str = "") -> str:
    """Return what to type to start a run again, with other options for it if there are any."""
    if run.purpose == "run":
        return " ".join(["yurt", "retry", run.id, *options.split()])
    words = ["dev", "up", run.name] if run.purpose == "dev" else run.command  # of a service or a shell: as it was typed
    at = words.index("--") if "--" in words else len(words)
    own = ["--context", run.context, *(["--name", run.name] if run.purpose == "service" else []), *options.split()]
    return shlex.join(["yurt", *words[:at], *own, *words[at:]])


def filled(text: str, run: Run, words: Mapping[str, str] | None = None) -> str:
    """Return a text of advice with the id of a run for RUN, the command that starts it again, and `words` for {names}.

    A name without a word becomes a question mark.
    """

    def value(found: re.Match[str]) -> str:
        if found[1]:
            return (words or {}).get(found[1], "?")
        return f"`{again(run)}`" if found[0] == RETRY else run.id

    return _PLACES.sub(value, text)
