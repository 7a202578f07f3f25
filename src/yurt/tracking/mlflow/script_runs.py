"""Reads what a script logged with its own MLflow, from the copies of its folder mlruns: a store of plain files."""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

from yurt.config import yaml_text
from yurt.model import layout
from yurt.model.growth import MLRUNS
from yurt.model.site_words import whole
from yurt.tracking.followed import Copy
from yurt.tracking.mlflow.names import name_of
from yurt.tracking.mlflow.points import Source

FILE = re.compile(
    rf"{layout.OUTPUTS}/{MLRUNS}/[^/]+/(?P<run>[0-9a-f]{{32}})/(?P<what>meta\.yaml|(?:params|metrics|tags)/(?P<name>.+))",
    re.DOTALL,
)
STATES = {1: "RUNNING", 2: "SCHEDULED", 3: "FINISHED", 4: "FAILED", 5: "KILLED"}
LARGEST = 1 << 16
"""Bytes of a file of a parameter or a tag that are read."""


class ScriptRun(msgspec.Struct, kw_only=True):
    """An MLflow run that a script made."""

    id: str
    name: str = ""
    parent: str = ""
    status: str = "RUNNING"
    started: int = 0
    ended: int | None = None
    params: dict[str, str] = {}
    tags: dict[str, str] = {}
    sources: list[Source] = []


def read(copies: Mapping[str, Copy]) -> list[ScriptRun]:
    """Return the MLflow runs in the copies of a run, the oldest first. Paths are relative to the run folder."""
    found: dict[str, ScriptRun] = {}
    complete: set[str] = set()
    for path, copy in copies.items():
        match = FILE.fullmatch(path)
        if match is None:
            continue
        run = found.setdefault(match["run"], ScriptRun(id=match["run"], params={}, tags={}, sources=[]))
        what, name = match["what"].partition("/")[0], match["name"]
        if what == "metrics":
            run.sources.append(Source(path, copy.file, copy.size, copy.generation, name_of(name)))
        elif what == "params":
            run.params[name] = _text(copy)
        elif what == "tags":
            run.tags[name] = _text(copy)
        elif _read_meta(run, _text(copy)):
            complete.add(run.id)
    for run in found.values():
        run.parent = run.tags.get("mlflow.parentRunId", "")
    return sorted((found[each] for each in complete), key=lambda run: (run.started, run.id))


def _read_meta(run: ScriptRun, text: str) -> bool:
    """Read meta.yaml of a run. False if it is not complete yet, or the run was deleted."""
    import yaml

    try:
        meta = yaml_text.parse(text)  # each value is text
        run.started = whole(meta["start_time"])
        run.ended = whole(meta["end_time"]) if meta.get("end_time") else None
        run.status = STATES.get(whole(meta["status"]), "RUNNING")
        name = meta.get("run_name")
        run.name = name if isinstance(name, str) else ""
        return bool(meta.get("lifecycle_stage", "active") == "active")
    except (yaml.YAMLError, KeyError, TypeError, ValueError, AttributeError):
        return False


def _text(copy: Copy) -> str:
    with copy.file.open("rb") as file:
        return file.read(LARGEST).decode(errors="replace")
