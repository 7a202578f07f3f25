"""`yurt.run`: submit a command as a run or a sweep, like the command line's `yurt run`."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Unpack

import msgspec

from yurt.api.options import Options, fields
from yurt.api.runs import Run
from yurt.api.sets import plain, sets_of
from yurt.config import contexts
from yurt.contexts import folders
from yurt.contexts.fan_out import ready
from yurt.errors import UserError
from yurt.lifecycle.outbox.enqueue import enqueue
from yurt.lifecycle.plan import plan as planning
from yurt.lifecycle.plan.request import Request
from yurt.model.run import After
from yurt.store import Store


def run(
    command: Sequence[str | os.PathLike[str]],
    *,
    context: str | None = None,
    params: Mapping[str, Any] | None = None,
    grid: Mapping[str, Sequence[Any]] | None = None,
    zip: Mapping[str, Sequence[Any]] | None = None,
    sets: Sequence[Mapping[str, Any]] | None = None,
    after: Sequence[str | Run] = (),
    after_any: Sequence[str | Run] = (),
    **options: Unpack[Options],
) -> Run:
    """Submit a command as a run, or as a sweep, with a snapshot of the code as it is on disk now.

        run = yurt.run(["python", "train.py"], context="alpha", params={"lr": 0.1}, gpus=1, time="2h")
        sweep = yurt.run(["python", "train.py"], grid={"lr": [0.1, 0.01], "seed": range(5)})

    - `command`: the program and its arguments, as a list.
    - `context`: where the command runs; the current context if None; with `"best"`, where it starts first.
    - `params`: parameters, passed to the command as `--KEY VALUE`.
    - `grid`: makes a sweep with one task for each combination of values.
    - `zip`: makes a sweep whose first task takes the first value of each key, the second task the second, and so on.
    - `sets`: makes a sweep with one task for each of these parameter sets. `grid`, `zip` and `sets` can be combined:
      the sweep is their product. All its tasks also get `params`.
    - `after`: runs that must complete before this one starts; a `yurt.Run`, or any name that `yurt show` accepts.
    - `after_any`: runs that must finish, in any state, before this one starts.
    - `options`: the [options](#options) of `yurt run`, such as `cpus=2`, `gpus="a100:1"`, `mem="8G"` or
      `tags=["first"]`.

    Returns when the run is submitted; with `sync=True`, after the home sync that it waits for. If the site cannot be
    reached, the run is saved, a warning is issued, and the next yurt command submits it. Raises `TypeError` for an
    unknown option, `yurt.errors.UserError` for an invalid value and `yurt.errors.RefusedError` if the site rejects the
    run; in that case nothing is saved.
    """
    ready()
    if isinstance(command, str):
        words = command.split()
        raise UserError("the command must be a list, not str", code="usage", hint=f"pass `yurt.run({words!r})`")
    given = plain(params or {})
    many = sets_of(given, grid, zip, sets)
    request = Request(
        words=[os.fspath(word) for word in command],
        params=given if many is None else {},
        typed=True,
        sets=many or [],
        **fields(options, "yurt.run()"),
    )
    request, name = _where(request, contexts.current_name(context or ""))
    found = contexts.site(name)
    with folders.store() as index:
        both = [*_after(index, after, name, ended=False), *_after(index, after_any, name, ended=True)]
        request = msgspec.structs.replace(request, after=both)
        planned = planning.plan(found, request, index=index)
        entry, messages = enqueue(index, found, planned)
        if entry.run.home_sync:
            from yurt.lifecycle.syncing import sync_first

            (entry,), notes = sync_first(index, [entry])
            messages += notes
    for text in messages:
        warnings.warn(text, stacklevel=2)
    return Run(entry)


def _where(request: Request, context: str) -> tuple[Request, str]:
    """Return the request and its context; for `best`, the context where it starts first."""
    if context != "best":
        return request, context
    from yurt.where import where

    if not where.is_best(context):
        return request, context
    found = where.best(request)
    return found.request, found.context


def _after(index: Store, before: Sequence[str | Run], context: str, *, ended: bool) -> list[After]:
    from yurt.lifecycle.outbox.dependencies import following
    from yurt.lifecycle.select import which

    names = [each.id if isinstance(each, Run) else each for each in before]
    return following(which(index, names), context, ended=ended)
