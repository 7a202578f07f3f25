"""The variables of a run: yurt's own, the user's, and those of MLflow and W&B. Pure.

In a sweep, the job inserts the task number between the parts of a value.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

from yurt.model import layout
from yurt.model.growth import MLRUNS
from yurt.model.run import Plan, Run

OWN_MLFLOW = '[ -n "${MLFLOW_TRACKING_URI-}" ] || export MLFLOW_TRACKING_URI='
"""Begins the line of `data` that gives MLflow a place. MLflow 3 refuses files, unless a second variable allows them."""


def variables_of(plan: Plan) -> dict[str, bytes]:
    """Return the variables of a run, or of a sweep's last task: yurt's own and the user's, which take precedence."""
    number = b"%d" % (len(plan.sets) - 1)
    return {**{name: number.join(parts) for name, parts in _own(plan.run).items()}, **plan.variables}


def _own(run: Run) -> dict[str, tuple[bytes, ...]]:
    """Return the variables that yurt sets. In a sweep, the job inserts the task number between the parts of a value."""
    id_ = run.id.encode()
    return {
        "YURT_RUN_ID": (id_ + b".", b"") if run.tasks else (id_,),
        "YURT_RUN_DIR": _path(run),
        "YURT_CONTEXT": (run.context.encode(),),
        "YURT_OUTPUTS": _path(run, layout.OUTPUTS),
        "YURT_CHECKPOINTS": _path(run, layout.CHECKPOINTS),
        "YURT_PARAMS": _path(run, layout.PARAMS),
        **({"YURT_SWEEP_ID": (id_,)} if run.tasks else {}),
        "PYTHONDONTWRITEBYTECODE": (b"1",),
        "PYTHONUNBUFFERED": (b"1",),
    }


def _unless_set(plan: Plan) -> dict[str, tuple[bytes, ...]]:
    """Return the variables that yurt sets if neither the user nor the site has set them, in parts as `_own`."""
    wanted = {"WANDB_DIR": _own(plan.run)["YURT_OUTPUTS"]}
    if plan.setup.offline:
        wanted["WANDB_MODE"] = (b"offline",)
    return {name: parts for name, parts in wanted.items() if name not in plan.variables}


def _path(run: Run, name: str = "") -> tuple[bytes, ...]:
    """Return a path in the folder of the run, or of a task of the sweep."""
    folder, below = os.fsencode(run.folder), f"/{name}".encode() if name else b""
    return (folder + f"/{layout.TASKS}/".encode(), below) if run.tasks else (folder + below,)


def _mlflow(run: Run) -> bytes:
    """Return the line that lets MLflow write to the outputs of the run, unless the user has set another place."""
    parts = [_in_url(each) for each in _path(run, f"{layout.OUTPUTS}/{MLRUNS}")]
    parts[0] = b"file://" + parts[0]
    return OWN_MLFLOW.encode() + _joined(parts) + b" MLFLOW_ALLOW_FILE_STORE=true"


_SAFE_IN_URL = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-~/"


def _in_url(path: bytes) -> bytes:
    if not path.strip(_SAFE_IN_URL):
        return path
    from urllib.parse import quote_from_bytes

    return quote_from_bytes(path).encode()


def _joined(parts: Iterable[bytes]) -> bytes:
    return b'"$YURT_TASK_INDEX"'.join(quote_bytes(each) for each in parts)


def lines(plan: Plan) -> Iterator[bytes]:
    """Yield the lines of `data` that set them."""
    for name, parts in {**_own(plan.run), **{name: (value,) for name, value in plan.variables.items()}}.items():
        yield b"export " + name.encode() + b"=" + _joined(parts)
    for name, parts in _unless_set(plan).items():
        yield b'[ -n "${' + name.encode() + b'+x}" ] || export ' + name.encode() + b"=" + _joined(parts)
    yield _mlflow(plan.run)


def quote_bytes(value: bytes) -> bytes:
    return b"'" + value.replace(b"'", b"'\"'\"'") + b"'"
