"""What the laptop asks of a dev node: the JSON in the environment variable YURT_DEV."""

import json
import os
import re
from typing import Any, Dict, Mapping, NamedTuple, Optional

from yurt.node.files import NodeError

VARIABLE = "YURT_DEV"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*\Z")
KINDS = ("", "git", "folder", "project", "archive")


class Source(NamedTuple):
    """What the first workspace is created from."""

    kind: str
    value: str
    uploaded: bool = False
    """Whether it is a copy for this workspace alone, in a folder of its own; both are removed after use."""


class Keep(NamedTuple):
    """Which versions are kept."""

    last: int
    days: int
    weeks: int


class Config(NamedTuple):
    """The settings of one dev node. Times are in seconds, sizes in bytes."""

    name: str
    workspace: str
    root: str
    backups: str
    interval: float
    compression: str
    keep: Keep
    limit: int
    source: Source
    restore: int
    idle: float
    idle_release: bool
    limit_seconds: Optional[float]
    retry: float
    """The pause after a failed backup, doubled with each further failure."""
    beat: float
    """How often the holder says that it is alive."""
    run: str
    run_folder: str
    job: str
    cluster: str
    context: str
    """The name of the context on the machine that started it, for messages."""


def read(environment: Mapping[str, str]) -> Config:
    """Return the settings. Raises NodeError if they are missing or not usable."""
    try:
        given = json.loads(environment.get(VARIABLE) or "")
        if not isinstance(given, dict):
            raise ValueError("it is not an object")
        return _read(given, environment)
    except (ValueError, TypeError, KeyError) as error:
        raise NodeError("the settings of the dev node in %s are not usable: %r" % (VARIABLE, error)) from None


def _read(given: Dict[str, Any], environment: Mapping[str, str]) -> Config:
    name = str(given.get("name") or "default")
    default = "work" if name == "default" else "work-" + name
    workspace = str(given.get("workspace") or default)
    if not NAME.match(name) or not (os.path.isabs(workspace) or NAME.match(workspace)):
        raise ValueError("%s or %s is not a name" % (name, workspace))
    source, keep = given.get("source") or {}, given.get("keep") or {}
    kind = str(source.get("kind") or "")
    if kind not in KINDS:
        raise ValueError("unknown source %s" % kind)
    backups = str(given["backups"])
    if not os.path.isabs(backups):
        raise ValueError("%s is not an absolute path" % backups)
    limit = given.get("limit_seconds")
    return Config(
        name=name,
        workspace=os.path.normpath(workspace) if os.path.isabs(workspace) else workspace,
        root=str(given.get("root") or ""),
        backups=os.path.normpath(backups),
        interval=float(given.get("interval") or 1800),
        compression=str(given.get("compression") or "auto"),
        keep=Keep(int(keep.get("last", 10)), int(keep.get("days", 7)), int(keep.get("weeks", 4))),
        limit=int(given.get("limit") or 0),
        source=Source(kind, str(source.get("value") or ""), bool(source.get("uploaded"))),
        restore=int(given.get("restore") or 0),
        idle=float(given.get("idle") or 7200),
        idle_release=bool(given.get("idle_release")),
        limit_seconds=None if limit is None else float(limit),
        retry=float(given.get("retry") or 60),
        beat=float(given.get("beat") or 60),
        run=environment.get("YURT_RUN_ID", ""),
        run_folder=environment.get("YURT_RUN_DIR") or os.getcwd(),
        job=environment.get("SLURM_JOB_ID", ""),
        cluster=environment.get("SLURM_CLUSTER_NAME", ""),
        context=str(given.get("context") or ""),
    )
