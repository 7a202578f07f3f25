"""Downloads the results of runs from one site: of one run, or of many in one transfer."""

from __future__ import annotations

import contextlib
import errno
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from yurt.contexts import outside_files
from yurt.errors import NotFoundError, RefusedError, UserError, YurtError, here_is_full
from yurt.lifecycle.files import local_copy
from yurt.model import layout, tasks
from yurt.model.files import NOTHING, Brought, Contents, Measures, Pick, Progress, Pull, total, unreported
from yurt.model.progress import Event, Watch, unwatched
from yurt.model.run import Run
from yurt.store import Copy, Entry, Store

if TYPE_CHECKING:
    from yurt.backends.base import Files

RESULTS = "results"

UNKNOWN = Measures("", "", "")
"""The measures of an incomplete copy."""


class Fetched(msgspec.Struct, frozen=True, kw_only=True):
    """What was fetched from a run, and how."""

    id: str
    context: str
    target: str
    """Folder on this machine; empty if the run has written nothing."""
    files: int = 0
    """Number of files transferred; files that were already up to date do not count."""
    size: int = 0
    """Size of these files in bytes."""
    method: str = ""
    """rsync, or tar if one side has no rsync; empty if nothing was transferred."""
    replaced: int = 0
    """Files of the project that were replaced on this machine; their former content is in NAME~."""
    hidden: int = 0
    """Files of the working directory that were not fetched: files in the outputs have the same names."""
    complete: bool = False
    """Whether all results of a finished run are now on this machine."""


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """What to fetch of runs, and the folder to put it in."""

    only: Sequence[str] = ()
    everything: bool = False
    folder: Path | None = None
    several: bool = False
    """Whether each run gets its own subfolder of `folder`."""
    project: Path | None = None
    """The user's project, if files are fetched to another folder than `results`."""
    names: Mapping[str, str] = {}
    """Names of these subfolders by run id; the default is the run id."""

    def target(self, run: Run) -> Path:
        if self.folder is None:
            # A folder of its own: a result may have the same name as one of the run's own files.
            return Path(RESULTS) / (f"{run.id}.all" if self.everything else run.id)
        return self.folder / self.names.get(run.id, run.id) if self.several else self.folder


LONGEST = 100
"""Maximum length of the list of tasks in a message."""

Found = tuple[Entry, Contents]


def has_results(contents: Contents) -> bool:
    """Whether there is something to fetch without --all."""
    return contents.measures.outputs != NOTHING or contents.measures.work != NOTHING


def together(found: Sequence[Found], wanted: Wanted) -> list[list[Found]]:
    """Group the runs that can be fetched in one transfer: same project, same target folder."""
    groups: dict[tuple[Path, str], list[Found]] = {}
    for entry, contents in found:
        groups.setdefault((wanted.target(entry.run).parent, layout.project_of(entry.run.folder)), []).append(
            (entry, contents)
        )
    return list(groups.values())


class Transfer:
    """One transfer of the results of several runs."""

    def __init__(self, store: Store, files: Callable[[], Files], group: Sequence[Found], wanted: Wanted) -> None:
        """`files`: returns the files of the site; called only if something has to be fetched."""
        self._store, self._files, self._group, self._wanted = store, files, group, wanted
        # A glob that ends with a slash selects everything below the folder.
        self._only = [f"{glob}**" if glob.endswith("/") else glob for glob in wanted.only]

    def run(self, watch: Watch, already: Brought | None = None) -> tuple[list[Fetched], list[Run]]:
        """Fetch everything. Return what was fetched of each run, and the runs in which no file matches.

        `already`: what was fetched at once, which is everything.
        """
        nonempty = [each for each in self._group if self._wanted.everything or has_results(each[1])]
        if already is not None:
            brought = {self._group[0][0].run.id: ("rsync", already)}
        else:
            brought = self._pull(nonempty, watch) if nonempty else {}
        done, unmatched = [], []
        for entry, contents in self._group:
            way, result = brought.get(entry.run.id, ("", None))
            if self._only and (result is None or not result.matched):
                unmatched.append(entry.run)
            else:
                done.append(self._fetched(entry, contents, way, result))
        return done, unmatched

    def at_once(self, run: Run, watch: Watch) -> tuple[Contents, Brought | None] | None:
        """Look at a run and fetch its outputs, in one session if the site can; see `Files.outputs_at_once`.

        Not if folders above the target would have to be made: there may be nothing to fetch.
        """
        target = self._wanted.target(run)
        if not target.parent.is_dir():
            return None
        pick = Pick(self._only, backup=self._in_project(target))
        with self._made([target], self._wanted.folder is None) as made:
            found = self._files().outputs_at_once(run.folder, target, pick, _progress(watch, run.id))
            if found is None or found[1] is None:
                _remove_empty(made)
        return found

    def _fetched(self, entry: Entry, contents: Contents, way: str, result: Brought | None) -> Fetched:
        run = entry.run
        if result is None:
            return Fetched(id=run.id, context=run.context, target="", complete=self._is_final(entry, contents))
        target = self._wanted.target(run)
        return Fetched(
            id=run.id,
            context=run.context,
            target=shown(str(target)),
            files=result.files,
            size=result.size,
            method=way,
            replaced=result.replaced if self._in_project(target) else 0,
            hidden=result.hidden,
            complete=self._note(entry, contents, target, whole=self._is_complete(result)),
        )

    def _is_complete(self, result: Brought) -> bool:
        return not (self._only or result.vanished or result.hidden)

    def _pull(self, found: Sequence[Found], watch: Watch) -> dict[str, tuple[str, Brought]]:
        """Pull one run into its folder, or several into sibling folders."""
        runs = [entry.run for entry, _contents in found]
        targets = {run.id: self._wanted.target(run) for run in runs}
        pulls = [
            Pull(
                entry.run.folder,
                targets[entry.run.id].name,
                outputs=contents.measures.outputs != NOTHING,
                work=contents.measures.work != NOTHING,
                size=total(contents.measures),
            )
            for entry, contents in found
        ]
        several = len(runs) > 1
        label = f"{len(runs)} runs" if several else runs[0].id
        if several:
            watch(Event(f"collecting the files of {len(runs)} runs on {runs[0].context}"))
        with self._made(list(targets.values()), self._wanted.folder is None):
            target = targets[runs[0].id].parent if several else targets[runs[0].id]
            way, brought = self._files().pull(
                pulls,
                target,
                Pick(self._only, backup=self._in_project(target)),
                _progress(watch, label),
                everything=self._wanted.everything,
            )
        if not several:
            return {runs[0].id: (way, brought)}
        return {run.id: (way, brought.below[targets[run.id].name]) for run in runs}

    def _in_project(self, target: Path) -> bool:
        """Whether the target contains files of the user's project, or of another repository, which have to be kept."""
        project = self._wanted.project
        if self._wanted.folder is not None and (target / ".git").exists():
            return True
        if project is None:
            return False
        path = target.resolve()
        return path.is_relative_to(project) and not path.is_relative_to(project / RESULTS)

    @contextlib.contextmanager
    def _made(self, targets: Sequence[Path], ignored: bool) -> Iterator[list[Path]]:
        """Create the target folders and yield those that are new; afterwards remove those that stayed empty."""
        for each in targets:
            outside_files.check_target(each)
        fresh = [each for each in (targets[0].parent,) if not each.exists()]
        made = [*(target for target in targets if _make(target, ignored=ignored)), *fresh]
        try:
            yield made
        except BaseException:
            _remove_empty(made)
            raise
        if self._only:
            _remove_empty(made)

    def _is_final(self, entry: Entry, contents: Contents) -> bool:
        """Whether the run has finished and its results could be measured, so that they can be compared later."""
        return (entry.status.final or contents.ended) and not contents.measures.unmeasured

    def _note(self, entry: Entry, contents: Contents, target: Path, *, whole: bool) -> bool:
        """Record what was fetched. Return whether these are all final results."""
        path = target.absolute()
        final = whole and self._is_final(entry, contents)
        measures, files = (contents.measures, local_copy.record(str(path))) if final else (UNKNOWN, b"")
        if not self._wanted.everything:
            measures = msgspec.structs.replace(measures, checkpoints="")
        self._store.note_fetched(entry.run.id, Copy(target=bytes(path), at=time.time(), measures=measures, files=files))
        return final


def no_match(runs: Sequence[Run], wanted: Wanted) -> YurtError:
    """Return the error for runs without a file that matches."""
    globs = ", ".join(f"'{shown(glob)}'" for glob in wanted.only)
    where = "run folder" if wanted.everything else "results"
    return NotFoundError(
        f"no file in the {where} of {_listed(runs)} matches {globs}",
        code="not-found",
        hint=f"fetch all files with `yurt fetch {runs[0].sweep or runs[0].id}`",
    )


def _listed(runs: Sequence[Run]) -> str:
    """Return the names of runs; the tasks of a sweep as ranges."""
    singles = [run.id for run in runs if run.task is None]
    found = [f"{'run' if len(singles) == 1 else 'runs'} {', '.join(singles)}"] if singles else []
    for sweep in dict.fromkeys(run.sweep for run in runs if run.task is not None):
        numbers = [run.task for run in runs if run.task is not None and run.sweep == sweep]
        which = tasks.ranges(numbers)
        if len(which) > LONGEST:
            found.append(f"{len(numbers)} tasks of {sweep}")
        else:
            found.append(f"{'task' if len(numbers) == 1 else 'tasks'} {which} of {sweep}")
    return " and ".join(found)


def _remove_empty(folders: Sequence[Path]) -> None:
    for folder in folders:
        with contextlib.suppress(OSError):  # not empty
            folder.rmdir()


def _progress(watch: Watch, label: str) -> Progress:
    if watch is unwatched:
        return unreported

    def progress(size: int, total: int) -> None:
        watch(Event(f"fetching {label}", size, total, bytes=True))

    return progress


def shown(text: str) -> str:
    """Return a path as text; bytes that are not UTF-8 are escaped."""
    return text.encode(errors="surrogateescape").decode(errors="backslashreplace")


def _make(target: Path, *, ignored: bool) -> bool:
    """Create a target folder; False if it exists. A new `results` gets a .gitignore."""
    try:
        if ignored:
            parent = target.parent
            with contextlib.suppress(FileExistsError):  # the project's own folder, or an earlier fetch made it
                parent.mkdir()
                (parent / ".gitignore").write_text("*\n")
        if target.is_dir():
            return False
        target.mkdir(parents=True)
    except (FileExistsError, NotADirectoryError):
        path = shown(str(target))
        raise UserError(f"'{path}' is not a folder", code="usage", hint="choose a folder with `--to DIR`") from None
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise here_is_full(target, error.strerror or "") from None
        path = shown(str(target))
        raise RefusedError(
            f"cannot write to {path}: {error.strerror}",
            code="cannot-write",
            hint="choose another folder with `--to DIR`",
        ) from None
    return True
