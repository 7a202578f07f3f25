"""What `yurt show` prints of runs and of sweeps alike."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from yurt.cli import render


def head(found: Any, here: Any) -> list[tuple[str, str]]:
    """What is said of runs and of sweeps alike."""
    run, status = found.run, found.status
    state = status.state + (f": {status.reason}" if status.reason else "")
    return [
        ("sweep" if run.tasks else "run", run.id),
        ("task of", run.sweep),
        ("name", run.name),
        ("state", state),
        ("native", status.native),
        ("command", render.words(run.command)),
        ("context", run.context),
        ("job", status.job),
        ("node", status.node),
        ("project", run.project),
        ("source", run.source),
        ("folder", run.folder + (f" (removed {render.moment(here.removed_at)})" if here.removed_at else "")),
        ("fetched to", ", ".join(here.copies)),
        ("code", _code(run)),
        ("tags", ", ".join(run.tags)),
        ("note", run.note),
        ("follows", ", ".join(each.run for each in run.after)),
        ("retry of", run.retry_of),
        ("retried as", ", ".join(found.retried_as)),
        ("secrets", ", ".join(run.secrets)),
        ("made", f"{render.moment(run.created)} by {run.user} on {run.host} with yurt {run.yurt_version}"),
    ]


def print_facts(facts: Sequence[tuple[str, str | render.Drawn]]) -> None:
    """One below the other, without those of which nothing is known."""
    room = max(len(label) for label, text in facts if text) + 2
    for label, text in facts:
        if not isinstance(text, str):
            print(f"{label:{room}}{text.draw(render.terminal_columns() - room, paint=render.colours())}")
        elif text:
            print(f"{label:{room}}{render.plain(text)}")


def print_parts(**parts: Sequence[tuple[str, Any, str]]) -> None:
    """Values by their key, each with its source, under titles."""
    for title, pairs in parts.items():
        if pairs:
            print(f"\n{title}")
            for key, value, source in pairs:
                print(f"  {key}: {render.plain(render.value(value))}" + (f"  ({source})" if source else ""))


def settings(run: Any) -> list[tuple[str, Any, str]]:
    return [(each.key, each.value, each.source) for each in run.settings]


def took(status: Any) -> str:
    if not status.started:
        return ""
    took = render.span(status.seconds or (status.ended or time.time()) - status.started)
    return f"{took} over {status.restarts + 1} starts" if status.restarts and status.seconds else took


def _code(run: Any) -> str:
    if not run.code.tree:
        return "none"
    text = f"{run.code.tree[:12]} ({run.code.files} files, {render.amount(run.code.size)})"
    if run.code.commit:
        changed = ", with changes" if run.code.dirty else ""
        text += f", {run.code.branch} at {run.code.commit[:12]}{changed}"
    return text
