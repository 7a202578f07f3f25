"""What to do about a run that is not in the queue of its site, or not known to be. Pure."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

from yurt.model.again import filled
from yurt.model.run import CANCEL_NOT_SENT, Run, Status

STATES = ("waiting", "submitting", "unknown", "starting")
"""States before a job is pending, or in which it is not known whether it is."""

_SENTENCES = {
    "waiting": "it is saved on this machine and not submitted yet",
    "unsure": "it may have been submitted, but the site has not confirmed it",
    "submitting": "it is being submitted",
    "unknown": "the site does not list its job",
    "starting": "its job is starting",
    "cancelling": CANCEL_NOT_SENT,
}


def sentence(status: Status) -> str:
    """Return why a run is not in the queue yet, in words."""
    kind = _kind(status)
    return _SENTENCES[kind] if kind == "cancelling" or not status.reason else status.reason


def advice(run: Run, status: Status) -> str:
    """Return what to do about a run that is not in the queue yet."""
    table, kind, here = _table(), _kind(status), run.context_type == "local"
    states = table["states"] | (table["here"] if here else {})
    usual = str(states.get(kind, ""))
    known = (str(text) for match, text in table["advice"].items() if re.search(match, status.reason))
    fitting = (text for text in known if not (here and "yurt login" in text))  # this machine needs none
    return filled((usual if kind == "cancelling" else next(fitting, usual)).replace("CONTEXT", run.context), run)


def _kind(status: Status) -> str:
    if status.cancel_requested:
        return "cancelling"
    unsure = status.unsure_since is not None and status.state in ("waiting", "unknown")
    return "unsure" if unsure else status.state


@cache
def _table() -> dict[str, Any]:
    import tomllib  # takes as long to import as the rest of the module

    return tomllib.loads((Path(__file__).parent / "before_queue.toml").read_text(encoding="utf-8"))
