"""`yurt.run`: a command as a run, or as a sweep, as `yurt run` makes it."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Unpack

from yurt.api.options import Options, fields
from yurt.api.runs import Run
from yurt.api.sets import plain, sets_of
from yurt.config import contexts
from yurt.errors import UserError
from yurt.lifecycle.outbox.enqueue import enqueue
from yurt.lifecycle.plan import plan as planning
from yurt.lifecycle.plan.request import Request
from yurt.model.run import After
from yurt.sites import folders
from yurt.sites.fan_out import ready
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
    """Run a command with the code as it is on disk now, on a context or on the current one.

    `params` are given to it as --KEY VALUE. With a `grid` (every value with every other), with `zip` (the first with
    the first, and so on) or with `sets` as they are it is a sweep, whose tasks share `params`. Other options are those
    of `yurt run`: cpus=2, gpus="a100:1", mem="8G", time="30m", tags=[…].
    """
    ready()
    if isinstance(command, str):
        raise UserError("a command is a list of words", code="usage", hint=f"yurt.run({command.split()!r})")
    found = contexts.named(contexts.current_name(context or ""))
    given = plain(params or {})
    many = sets_of(given, grid, zip, sets)
    with folders.store() as index:
        request = Request(
            words=[os.fspath(word) for word in command],
            params=given if many is None else {},
            typed=True,
            sets=many or [],
            after=[*_after(index, after, found.name, ended=False), *_after(index, after_any, found.name, ended=True)],
            **fields(options, "yurt.run()"),
        )
        planned = planning.plan(found, request, index=index)
        entry, said = enqueue(index, found, planned)
    for text in said:
        warnings.warn(text, stacklevel=2)
    return Run(entry)


def _after(index: Store, before: Sequence[str | Run], context: str, *, ended: bool) -> list[After]:
    from yurt.lifecycle.outbox.dependencies import following
    from yurt.lifecycle.select import which

    words = [each.id if isinstance(each, Run) else each for each in before]
    return following(which(index, words), context, ended=ended)
