"""serve jupyter, tensorboard and mlflow: which files on the site they show."""

from __future__ import annotations

from collections.abc import Sequence

from yurt.config import contexts
from yurt.contexts import folders
from yurt.contexts.facts import facts_if_probed
from yurt.errors import UserError
from yurt.lifecycle.select import which
from yurt.model import layout
from yurt.model.growth import MLRUNS
from yurt.services.named_service import place_of
from yurt.services.programs import Wanted
from yurt.store import Entry
from yurt.tracking.tensorboard.labels import of_runs


def notebooks_of(folder: str, context: str) -> Wanted:
    """Return what JupyterLab shows: a folder of the site, or the copy of the project in the run folder."""
    folder = folder or place_of("jupyter")
    return Wanted(program="jupyter", folder=_on_site(folder, context) if folder else "")


def logs_of(names: Sequence[str], folder: str, context: str) -> tuple[Wanted, str]:
    """Return what TensorBoard shows, and the context: a folder of the site, or runs. UserError."""
    if not names and not folder:
        folder = place_of("tensorboard")
    if bool(names) == bool(folder):
        raise UserError(
            "say what TensorBoard shows: either runs, or a folder with --logdir",
            code="usage",
            hint="for example: `yurt serve tensorboard @last`, or `yurt serve tensorboard --logdir '$SCRATCH/logs'`",
        )
    if folder:
        return Wanted(program="tensorboard", folder=_on_site(folder, context)), context
    entries = which(folders.store(), names)
    where = _one_context(entries, context)
    labels = of_runs([entry.run for entry in entries])
    links = {labels[entry.run.id].replace("/", "_"): entry.run.folder for entry in entries}
    return Wanted(program="tensorboard", links=links), where


def store_of(name: str, path: str, context: str) -> tuple[Wanted, str]:
    """Return the store that MLflow shows, and the context: a path of the site, or that of a run. UserError."""
    if not name and not path:
        path = place_of("mlflow")
    if bool(name) == bool(path):
        raise UserError(
            "say what MLflow shows: either a run, or a store with --store",
            code="usage",
            hint="for example: `yurt serve mlflow @last`, or `yurt serve mlflow --store '$SCRATCH/mlflow.db'`",
        )
    if path:
        return Wanted(program="mlflow", folder=_on_site(path, context)), context
    entries = which(folders.store(), [name])
    where = _one_context(entries, context)
    return Wanted(program="mlflow", folder=f"{entries[0].run.folder}/{layout.OUTPUTS}/{MLRUNS}"), where


def _on_site(path: str, context: str) -> str:
    """Return a path on the site, with ~ and variables as they are there."""
    place = contexts.site(contexts.current_name(context))
    return folders.expand(place, facts_if_probed(place), path, "the path")


def _one_context(entries: Sequence[Entry], context: str) -> str:
    found = {entry.run.context for entry in entries}
    if len(found) > 1:
        raise UserError(
            f"the runs are on {', '.join(sorted(found))}, and a service runs on one context",
            code="usage",
            hint="use `yurt tensorboard`, which downloads the event files",
        )
    (where,) = found
    if context and context != where:
        raise UserError(f"the runs are on {where}, not on {context}", code="usage", hint="leave out `--context`")
    return where
