"""Says once that `neptune: true` means MLflow now. A failure of the record only repeats the sentence."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from pathlib import Path

from yurt.config import contexts, paths
from yurt.model.run import Chosen

SENTENCE = (
    "`neptune: true` now means `track: true`: the Neptune service ended in March 2026, and yurt tracks runs with"
    " MLflow; see them with `yurt mlflow`"
)


def first_time(settings: Iterable[Chosen]) -> list[str]:
    """Return the sentence if a file sets `neptune` for a run, unless it was returned before."""
    found = next((each for each in settings if each.key == "track" and each.value is True), None)
    if found is None or not _says_neptune(found.source):
        return []
    said = paths.data_home() / "cache" / "neptune-said"
    if said.exists():
        return []
    with contextlib.suppress(OSError):
        paths.write_private(said, b"")
    return [SENTENCE]


def _says_neptune(source: str) -> bool:
    """Whether a line such as contexts.yaml:6 has the key `neptune`."""
    name, _, number = source.rpartition(":")
    if not number.isdigit():
        return False
    file = contexts.default_file()
    if file.name != name:
        from yurt.config import project

        here = project.find()
        file = here.file if here is not None else Path(name)
    try:
        lines = file.read_text(errors="replace").splitlines()
        return lines[int(number) - 1].strip().strip("\"'{ ").startswith("neptune")
    except (OSError, IndexError):
        return False
