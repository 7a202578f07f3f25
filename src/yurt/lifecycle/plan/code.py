"""The code of a run: a snapshot of the project as it is now, with its git commit."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from yurt.backends.kinds import kind_of
from yurt.config import paths
from yurt.contexts.project import Project
from yurt.errors import RefusedError, UserError, YurtError
from yurt.model import params
from yurt.model.context import Context
from yurt.model.progress import Event, Watch
from yurt.model.run import Code
from yurt.snapshot import git


def snapshot_of(
    project: Project,
    context: Context,
    *,
    include: Sequence[str],
    exclude: Sequence[str],
    largest_file: int | None,
    named: Sequence[str] = (),
    by_project: bool = False,
    watch: Watch,
) -> tuple[Code, list[str]]:
    """Take a snapshot and store it in the project's snapshot store on this machine. Return it with its warnings.

    `named` are the words of the command; a file among them that the snapshot does not contain is a warning.
    `by_project`: the project itself sets paths_to_copy. UnconfirmedError if it names files outside the project that the
    user has not agreed to upload.
    """
    from yurt import snapshot

    _check_folder(project.folder)
    watch(Event("taking a snapshot of the code"))
    paths.make_private(project.code.parent)
    head = Commit(project.folder)
    limits = {} if largest_file is None else {"largest_file": largest_file}
    inside, outside = _extra_paths(context.paths_to_copy, project)
    said = _checked(outside, project, by_project=by_project) if outside else []
    taken = snapshot.take(
        project.folder,
        project.code,
        include=[*include, *([] if by_project else inside)],
        add=inside if by_project else [],
        exclude=[*context.exclude, *exclude],
        also=outside,
        # The data changes with every run; the other two hold keys, and what sites reported.
        apart=[paths.data_home(), *(paths.config_home() / name for name in ("dev", "facts"))],
        named=_paths(named, project, context),
        while_git_runs=lambda: _import_backend(context),
        **limits,
    )
    commit, tree, branch = head.answer()
    code = Code(
        tree=taken.tree,
        files=taken.files,
        size=taken.size,
        commit=commit,
        dirty=bool(commit) and tree != taken.tree,
        branch=branch,
    )
    warnings = [_about_secrets(taken.secrets)] if taken.secrets else []
    warnings += said
    warnings += [_about_special(taken.special)] if taken.special else []
    return code, [*warnings, *(_about_absent(each, project.folder, context) for each in taken.absent)]


class Commit:
    """The commit of a folder. Git starts immediately and runs in the background until `answer` is called."""

    def __init__(self, folder: Path) -> None:
        try:
            self._process: git.Running | None = git.start(
                ["rev-parse", "HEAD", "HEAD:./", "--abbrev-ref", "HEAD"], folder=folder
            )
        except (RefusedError, OSError):
            self._process = None

    def answer(self) -> tuple[str, str, str]:
        """Return (commit, tree of the folder in it, branch); empty if there is no commit.

        UserError: git waits for a pipe in place of a file.
        """
        try:
            out = self._process.output() if self._process is not None else b""
        except RefusedError:
            return "", "", ""
        fields = out.decode(errors="replace").split()
        if len(fields) != 3:
            return "", "", ""
        return fields[0], fields[1], fields[2]


def _checked(outside: Sequence[Path], project: Project, *, by_project: bool) -> list[str]:
    """Return a warning if files in paths_to_copy look like secrets. UnconfirmedError as in `snapshot_of`."""
    from yurt.contexts import outside_files

    if by_project:
        outside_files.check(project, outside, "paths_to_copy of the project")
    sent = [paths.as_typed(each) for each in outside if not each.is_dir() and outside_files.is_secret(each)]
    return [f"`paths_to_copy` uploads what looks like a secret: {', '.join(sent)}"] if sent else []


def _import_backend(context: Context) -> None:
    """Import the modules that submit a run, which takes about as long as git takes to list files."""
    from yurt.contexts import connect

    with suppress(YurtError):
        connect.backend(context)


def _paths(words: Sequence[str], project: Project, context: Context) -> list[str]:
    """Return the files and folders of the project in the words of a command, relative to the project."""
    found: dict[str, None] = {}
    written = tuple(f"{folder}/" for folder in writable_folders(context))
    for text in (part for word in words for part in (word, word.partition("=")[2])):
        if not text or text[0] in "-/" or "\0" in text:
            continue
        path = os.path.normpath(os.path.join(project.subfolder, text))
        if path in (".", "..") or path.startswith("../") or f"{path}/".startswith(written):
            continue
        with suppress(OSError):  # too long for a path
            os.stat(project.folder / path)
            found[path] = None
    return list(found)


DATA = 10_000_000
"""Bytes from which an ignored file counts as data, which runs share, and not as a part of the code."""


def _about_absent(path: str, folder: Path, context: Context) -> str:
    name, whole = params.shown(path), (folder / path).is_dir()
    text = f"'{name}' is ignored, so the run does not get it; "
    include = f"`--include '{name}/**'`" if whole else f"`--include '{name}'`"
    with suppress(OSError):
        if not kind_of(context.type).here and (whole or os.stat(folder / path).st_size >= DATA):
            place = f"{context.name}:{_data_tier(context)}:{os.path.basename(path)}"
            put = f"yurt data put {shlex.quote(name)} {shlex.quote(place)}"
            return f"{text}copy data to the site once with `{put}` and name that path, or upload it with {include}"
    return f"{text}upload what .gitignore ignores with {include}"


def _data_tier(context: Context) -> str:
    """Return the tier for data: `project` if the site has one, else `scratch`, else `home`."""
    from yurt.config import facts as cache

    facts = cache.load(context)
    names = {*context.tiers, *(each.name for each in (facts.tiers if facts is not None else []))}
    return next((each for each in ("project", "scratch") if each in names), "home")


def _check_folder(folder: Path) -> None:
    """Refuse a project folder that contains the user's keys. UserError if it does."""
    real = os.path.realpath(folder)
    if real == "/":
        why = "it is the root of the file system"
    elif real == os.path.realpath(Path.home()):
        why = "it is your home folder"
    elif os.path.isdir(os.path.join(real, ".ssh")):
        why = "it contains the folder .ssh"
    else:
        return
    raise UserError(
        f"cannot take a snapshot of '{params.shown(str(folder))}': {why}",
        code="project-refused",
        hint="change to the folder of your project, or add `--no-snapshot` to run without code",
    )


def _about_secrets(names: Sequence[str]) -> str:
    shown = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
    return f"left out of the snapshot, because they look like secrets: {shown}; upload one with `--include {names[0]}`"


def _about_special(names: Sequence[str]) -> str:
    shown = ", ".join(params.shown(name) for name in names[:3]) + (f" and {len(names) - 3} more" if names[3:] else "")
    return f"left out of the snapshot, because they are pipes, sockets or devices: {shown}"


def writable_folders(context: Context) -> list[str]:
    """Return the folders of the project that a run writes to, as normalized paths. UserError for a path outside."""
    found = []
    for text in context.writable:
        path = os.path.normpath(text)
        if path.startswith(("/", "../", "~")) or path in (".", "..") or not path.isprintable():
            raise UserError(
                f"`writable` names '{params.shown(text)}', which is not a folder in the project",
                code="config-invalid",
                hint="name folders relative to the project, for example: `writable: [results]`",
            )
        found.append(path)
    return found


MOST_PATHS, LONGEST_PATH = 200, 4096
"""Limits of paths_to_copy. Each path takes a process of git; Linux has no longer paths."""


def _extra_paths(given: Sequence[str], project: Project) -> tuple[list[str], list[Path]]:
    """Split paths_to_copy, relative to the project folder, into globs inside the project and paths outside."""
    inside: list[str] = []
    outside: list[Path] = []
    folder = os.path.realpath(project.folder)
    if len(given) > MOST_PATHS or any(len(os.fsencode(text)) > LONGEST_PATH for text in given):
        raise UserError(
            f"paths_to_copy has more than {MOST_PATHS} paths, or one of more than {LONGEST_PATH} bytes",
            code="config-invalid",
            hint="name the folders that contain the files",
        )
    for text in given:
        path = os.path.realpath(os.path.join(folder, os.path.expandvars(os.path.expanduser(text))))
        if path.startswith(folder + "/"):
            import glob

            name = glob.escape(os.path.relpath(path, folder))
            inside.append(f"{name}/**" if os.path.isdir(path) else name)
        else:
            outside.append(Path(path))
    return inside, outside
