"""Advice about what a run asks for, from earlier runs in the index. Queries no site."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from yurt.model.run import Resources, Run
from yurt.model.usage import Usage

if TYPE_CHECKING:
    from yurt.store import Store

MOST = 60
"""How many earlier runs of the project are compared, and how many tasks of each sweep."""

AGE = 180 * 86_400
"""Seconds after which a run says nothing about the next one."""


def advice(store: Store, run: Run) -> list[str]:
    """Return what a run should ask for instead, each as a sentence; usually nothing."""
    asked = run.resources
    if run.purpose != "run" or not (asked.memory_mb or asked.cpus or asked.minutes or asked.gpus):
        return []
    if any(each.key == "advice" and each.value is False for each in run.settings):
        return []
    rows = store.earlier_usages(run.project, run.context, run.created - AGE, MOST)
    if not any(row.usage for row in rows):
        return []
    from yurt.lifecycle.outbox.room import program
    from yurt.model import advice as rules

    same = program(run.command)
    words: dict[bytes, list[str]] = {}
    found = []
    for row in rows:
        if row.command not in words:
            words[row.command] = msgspec.json.decode(row.command, type=list[str])
        command = words[row.command]
        if program(command) == same:
            found.append(
                rules.Earlier(
                    state=row.state,  # type: ignore[arg-type]
                    resources=msgspec.json.decode(row.resources, type=Resources),
                    usage=msgspec.json.decode(row.usage, type=Usage) if row.usage else None,
                    seconds=row.seconds,
                    same=command == run.command and msgspec.json.decode(row.params) == run.params,
                )
            )
    return rules.advice(asked, found)
