"""A user's request for a run, and the plan made from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec

from yurt.errors import UnreachableError
from yurt.model.run import After, Plan, RestartPolicy
from yurt.model.stage import StageRequest


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """A user's request for a run or a sweep."""

    words: Sequence[str]
    """The script or command; may be empty only for a session."""
    arguments: Sequence[str] = ()
    """The arguments after `--`."""
    params: Mapping[str, Any] = {}
    """Further parameters. The script receives texts unchanged; yurt records them as numbers or lists if they are."""
    typed: bool = False
    """Whether `params` already have their types, so that a text stays a text."""
    flags: Mapping[str, Any] = {}
    """Settings given as options, by key of a context."""
    project: str = ""
    """The name of the project, instead of its own."""
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
    """For a sweep: the typed parameters of each task."""
    pass_sets: bool = True
    """Whether `sets` are also passed as arguments of the command."""
    style: Literal["", "options", "hydra"] = ""
    """How parameters are passed: `--key value` or `key=value`; empty to decide by the script."""
    array: str = ""
    """The indices of `#SBATCH --array` if it made `sets`, such as 0-9."""
    spec: Literal["", "plain", "mrunner"] = ""
    """Whether a spec file made `sets`, and whether with the helpers of mrunner."""
    parallel: int | None = None
    """How many tasks may run at a time."""
    hold: bool = False
    largest_file: int | None = None
    secrets: Sequence[str] = ()
    """Names of variables whose values are read from the environment or the keyring on submission."""
    session: bool = False
    """Whether the job runs no command, but keeps its resources for a session with `words`; without words, a shell."""
    dev: Mapping[str, Any] | None = None
    """If the job is a dev node, which `name` names: the configuration of the program that holds it."""
    service: Mapping[str, Any] | None = None
    """If the job is a service, which `name` names: the configuration of the program that runs it."""
    stage: StageRequest = StageRequest()
    """What options stage on the disk of the node, in addition to the project file."""
    entry: str = ""
    """If the job is a service: the entry of the project's services whose settings it has, if there is one."""
    calls: str = ""
    """Display name of the function that the tasks call."""
    calls_per_process: int = 0
    """How many calls one process makes at most, where processes stay; 0: no limit."""
    calls_python: str = ""
    """The version of Python that pickled the calls, such as 3.11; empty if the request names the Python to use."""


class Unsettled(msgspec.Struct, frozen=True):
    """Why a plan could not be completed with the facts of its site."""

    draft: bytes
    """What is saved, to complete the plan when the site responds."""
    why: UnreachableError


class Planned(msgspec.Struct, frozen=True):
    """A plan, and warnings about it."""

    plan: Plan
    warnings: list[str]
    unsettled: Unsettled | None = None
