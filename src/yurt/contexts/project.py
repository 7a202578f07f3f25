"""The project around the working directory."""

from __future__ import annotations

import os
from pathlib import Path

from yurt.config import paths, project
from yurt.model import layout
from yurt.model.site_words import FileName


class Project:
    """The project around the working directory: its folder, its name, and the working directory within it."""

    def __init__(self, name: str = "") -> None:
        """`name` replaces the project's own name."""
        here = project.working_folder()
        found = project.find(here)
        self.folder = found.folder if found is not None else _top(here)
        self.name = name or (found.name if found is not None else self.folder.name)
        self.label = layout.project_label(self.name, str(self.folder))
        relative = os.path.relpath(here, self.folder)
        self.subfolder = "" if relative == "." else relative
        self.code = code_folder(self.label)


def code_folder(label: str) -> Path:
    """Return the local git folder for the code of a project. RefusedError if a site has given it an invalid label."""
    folder = paths.data_home() / "code" / f"{FileName(label)}.git"
    paths.safe(str(folder))
    return folder


def _top(here: Path) -> Path:
    """Return the git repository around a folder, unless it is the home folder; else the folder itself."""
    for folder in (here, *here.parents):
        if folder == Path.home() or folder == folder.parent:
            break
        if (folder / ".git").exists():
            return folder
    return here
