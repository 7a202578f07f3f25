"""The code of a run: a snapshot of the project as it is now, with its git commit."""

from __future__ import annotations

import glob
import os
from collections.abc import Sequence
from pathlib import Path

from yurt.config import paths
from yurt.lifecycle.plan import provenance
from yurt.model.context import Context
from yurt.model.progress import Event, Watch
from yurt.model.run import Code
from yurt.sites.project import Project


def snapshot_of(
    project: Project,
    context: Context,
    *,
    include: Sequence[str],
    exclude: Sequence[str],
    largest_file: int | None,
    watch: Watch,
) -> Code:
    """Take a snapshot and store it in the project's snapshot store on this machine."""
    from yurt import snapshot

    watch(Event("taking a snapshot of the code"))
    paths.make_private(project.code.parent)
    head = provenance.Commit(project.folder)
    limits = {} if largest_file is None else {"largest_file": largest_file}
    inside, outside = _extra_paths(context.paths_to_copy, project)
    taken = snapshot.take(
        project.folder,
        project.code,
        include=[*include, *inside],
        exclude=[*context.exclude, *exclude],
        also=outside,
        **limits,
    )
    commit, tree, branch = head.answer()
    return Code(
        tree=taken.tree,
        files=taken.files,
        size=taken.size,
        commit=commit,
        dirty=bool(commit) and tree != taken.tree,
        branch=branch,
    )


def _extra_paths(given: Sequence[str], project: Project) -> tuple[list[str], list[Path]]:
    """Split paths_to_copy, relative to the project folder, into globs inside the project and paths outside."""
    inside: list[str] = []
    outside: list[Path] = []
    folder = os.path.realpath(project.folder)
    for text in given:
        path = os.path.realpath(os.path.join(folder, os.path.expandvars(os.path.expanduser(text))))
        if path.startswith(folder + "/"):
            name = glob.escape(os.path.relpath(path, folder))
            inside.append(f"{name}/**" if os.path.isdir(path) else name)
        else:
            outside.append(Path(path))
    return inside, outside
