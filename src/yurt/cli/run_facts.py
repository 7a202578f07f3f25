"""Parts of `yurt show` that runs and sweeps share."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from yurt.cli import render
from yurt.cli.listing import Drawn
from yurt.model.addresses import without_password
from yurt.model.run import FINAL
from yurt.model.tally import BAD
from yurt.model.usage import Usage

CAUSES = 3
"""Causes of failed tasks that are printed for a sweep; `yurt why` prints all."""


def head(found: Any, here: Any) -> list[tuple[str, str]]:
    """Return the first facts of a run or a sweep, as labels and texts."""
    run, status = found.run, found.status
    return [
        ("sweep" if run.tasks else "run", run.id),
        ("task of", run.sweep),
        ("name", run.name),
        ("state", render.with_reason(status.state, status.reason)),
        *_explanation(found),
        ("hint", "" if _has_help(found) else memory_hint(run, status.state, found.task_states if run.tasks else {})),
        ("native state", status.native),
        ("command", _command(run)),
        ("context", run.context if not found.candidates or _decided(found) else _contexts(found.candidates)),
        *(("candidate", _candidate(each, sweep=bool(run.tasks))) for each in found.candidates),
        ("job", status.job),
        ("node", status.node),
        ("project", run.project),
        ("source", run.source),
        ("folder", run.folder + (f" (removed {render.moment(here.removed_at)})" if here.removed_at else "")),
        ("fetched to", ", ".join(here.copies)),
        ("kept in", _kept(found)),
        ("expires", _expires(found)),
        ("tracked", _tracked(here.tracked, final=status.state in FINAL)),
        ("code", _code(run)),
        ("environment", _environment(run.env, len(found.packages)) if run.env is not None else ""),
        *(("stage", line) for line in stage_lines(run)),
        ("tags", ", ".join(run.tags)),
        ("note", run.note),
        ("after", ", ".join(each.run for each in run.after)),
        ("retry of", run.retry_of),
        ("retried as", ", ".join(found.retried_as)),
        ("secrets", ", ".join(run.secrets)),
        ("created", f"{render.moment(run.created)} by {run.user} on {run.host} with yurt {run.yurt_version}"),
    ]


def _has_help(found: Any) -> bool:
    cause = getattr(found, "cause", None)
    return cause is not None and bool(cause.retry)


def _explanation(found: Any) -> list[tuple[str, str]]:
    """Return why a run failed or waits, in the words of `yurt why`; of a sweep, its failed tasks by cause."""
    if found.run.tasks:
        return [
            ("failed", f"{render.count(each.count, 'task')} ({each.tasks}): {each.why}")
            for each in found.failures[:CAUSES]
        ]
    if found.cause is not None:
        cause = found.cause
        return [("cause", cause.sentence), ("log", cause.line), ("help", cause.advice), ("type", cause.retry)]
    if found.pending is None:
        return []
    after = [
        ("waits for", f"run {each.run}" + (f" ({each.state})" if each.state else "")) for each in found.pending.after
    ]
    return [*after, ("help", found.pending.advice)]


def stage_lines(run: Any) -> list[str]:
    """Return what a run has on the disk of its node, one line for each input and output."""
    stage = run.stage
    if stage is None:
        return []
    owner = f"{run.id}.TASK" if run.tasks else run.id
    inputs = [f"in: {each.name} from {each.path}" for each in stage.inputs]
    return [*inputs, *(f"out: {each.name} to {_kept_in(each, owner)}" for each in stage.outputs)]


def _kept_in(output: Any, run: str) -> str:
    return f"{output.path}/{run}" if output.path else "the outputs of the run"


def _kept(found: Any) -> str:
    """Return where the copy of a run on a lasting tier is."""
    copy = None if found.run.tasks else found.site_copy
    return "" if copy is None else f"{copy.path} ({copy.tier}, {render.moment(copy.at)})"


def _expires(found: Any) -> str:
    """Return when the site deletes results that are nowhere else, and how to keep them."""
    if found.deleted_at is None:
        return ""
    from yurt.cli.deletion import deletion

    run, now = found.run.id, time.time()
    keep = f"; copy them with `yurt storage keep {run}` or `yurt fetch {run}`" if found.deleted_at > now else ""
    return f"its results {'are ' if found.deleted_at > now else ''}{deletion(found.deleted_at, now)}{keep}"


def _tracked(tracked: Any, *, final: bool) -> str:
    """Return when and where a run was sent to MLflow, or why not."""
    if tracked is None:
        return ""
    place = render.plain(without_password(tracked.uri)) if tracked.uri else "the MLflow store of this machine"
    if tracked.at:
        return f"{render.moment(tracked.at)} in {place}"
    if tracked.why:
        return f"not yet: {render.plain(tracked.why)}; next try after {render.moment(tracked.due)}"
    return f"not yet, goes to {place}" + ("" if final else " when it has finished")


def _decided(found: Any) -> bool:
    return not found.run.tasks and any(each.won for each in found.candidates)


def _contexts(candidates: Any) -> str:
    return ", ".join(dict.fromkeys(each.context for each in candidates))


def _candidate(each: Any, *, sweep: bool) -> str:
    """Return a candidate of a race in words."""
    where = f"{each.context} ({each.partition})" if each.partition else each.context
    if sweep:
        return f"{where}: first for {render.count(each.tasks, 'task')}"
    waited = "" if each.queued is None else f" after {render.span(each.queued)} in the queue"
    if each.won:
        return f"{where}: was first{waited}"
    if each.reason.startswith(("withdrawn", "being withdrawn")):
        return f"{where}: {each.reason}{waited}"
    return f"{where}: {render.with_reason(each.state, each.reason)}"


def _command(run: Any) -> str:
    """Return the command as typed; in the command of a task, long values of parameters are shortened."""
    most = render.LONGEST_VALUE
    words = [render.short(word, most) if run.sweep and len(word) > most else word for word in run.command]
    return render.command_line(words)


def memory_hint(run: Any, state: str, task_states: Mapping[str, int], usage: Usage | None = None) -> str:
    """Return how to repeat a run, or the tasks of a sweep, with more memory; empty if memory was not the problem.

    `usage`: what the run used, which may be more than twice its limit.
    """
    failed = {each for each in task_states if each in BAD}
    if state != "out_of_memory" and failed != {"out_of_memory"}:
        return ""
    if run.tasks:
        return f"`yurt why {run.id}` says how much memory they used, and how to repeat them with more"
    from yurt.model.again import again  # only for such a run

    known = run.resources.memory_mb
    enough = 2 * max(known or 0, usage.memory_mb or 0 if usage is not None else 0) or 16 * 1024
    option = f"{enough // 1024}G" if enough % 1024 == 0 else f"{enough}M"
    return f"repeat it with more memory: `{again(run, f'--mem {option}')}`"


def print_facts(facts: Sequence[tuple[str, str | Drawn]]) -> None:
    """Print one fact on each line, without empty ones."""
    room = max(len(label) for label, text in facts if text) + 2
    for label, text in facts:
        if not isinstance(text, str):
            print(render.labelled(label, text.draw(render.terminal_columns() - room, paint=render.colours()), room))
        elif text:
            print(render.labelled(label, render.plain(text), room))


def print_parts(**parts: Sequence[tuple[str, Any, str]]) -> None:
    """Print titled lists of keys, values and sources."""
    for title, pairs in parts.items():
        if pairs:
            print(f"\n{title}")
            for key, value, source in pairs:
                print(render.plain(f"  {key}: {render.readable(value)}" + (f"  ({source})" if source else "")))


def settings(run: Any) -> list[tuple[str, Any, str]]:
    return [(each.key, each.value, each.source) for each in run.settings]


def took(status: Any) -> str:
    if not status.started:
        return ""
    took = render.span(status.seconds or (status.ended or time.time()) - status.started)
    return f"{took} in {status.restarts + 1} starts" if status.restarts and status.seconds else took


def _environment(env: Any, known: int) -> str:
    packages = f"{render.count(env.packages or known, 'package')}, " if env.packages or known else ""
    return f"{env.address} from {env.title} ({packages}Python {env.python})"


def _code(run: Any) -> str:
    if not run.code.tree:
        return "none"
    text = f"{run.code.tree[:12]} ({render.count(run.code.files, 'file')}, {render.amount(run.code.size)})"
    if run.code.commit:
        changed = ", with uncommitted changes" if run.code.dirty else ""
        text += f", {run.code.branch} at {run.code.commit[:12]}{changed}"
    return text
