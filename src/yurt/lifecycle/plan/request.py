"""A run as a user asks for it, and what became of that: a plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from yurt.model.run import After, Plan, RestartPolicy


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """A run as a user asks for it."""

    words: Sequence[str]
    """The script or command."""
    arguments: Sequence[str] = ()
    """What stands after `--`."""
    params: Mapping[str, Any] = {}
    """Further parameters; a text reaches the script as it is, and is read as the number or list it stands for."""
    typed: bool = False
    """Whether those have their types already, so that a text is a text."""
    flags: Mapping[str, Any] = {}
    """Settings given as options, by the keys of a context."""
    name: str = ""
    tags: Sequence[str] = ()
    note: str = ""
    include: Sequence[str] = ()
    exclude: Sequence[str] = ()
    snapshot: bool = True
    copy: bool = False
    restart_policy: RestartPolicy = RestartPolicy()
    after: Sequence[After] = ()
    sets: Sequence[Mapping[str, Any]] = ()
    """Of a sweep: the parameters of each task, typed."""
    pass_sets: bool = True
    """Whether they are arguments of the command, too."""
    parallel: int | None = None
    """How many of them may run at a time."""
    hold: bool = False
    largest_file: int | None = None
    secrets: Sequence[str] = ()
    """Names of variables whose values are read from the environment or the keyring when the run is sent."""
    calls: str = ""
    """The function whose calls its tasks are, as people are shown it."""


class Planned(msgspec.Struct, frozen=True):
    """A plan, and what the user should know of it."""

    plan: Plan
    warnings: list[str]
