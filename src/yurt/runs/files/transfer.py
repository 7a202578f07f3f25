"""What runs of one site wrote, on its way here: of one run, or of many in one go."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from yurt.errors import NotFoundError, RefusedError, UserError, YurtError
from yurt.hosts import Host, rsync, tar
from yurt.hosts.base import refusal
from yurt.hosts.rsync import Brought, Pick, Progress
from yurt.model import layout
from yurt.model.progress import Event, Watch
from yurt.model.run import Run
from yurt.store import Copy, Entry, Store

# Names and paths come on standard input, a line each. What a killed one left is removed with what code left.
GATHER = """\
umask 077
mkdir -p -- "$1" && cd "$1" || exit 1
while IFS= read -r name && IFS= read -r path; do ln -s -- "$path" "$name" || exit 1; done
"""
"""Makes a folder of links to folders, each by the name that it shall have here: so many come as one."""

SCATTER = 'rm -rf -- "$1"'

LINKS = 'cd "$1" && find ./*/@WORK@ -type l -lname "$2" -print0 2> /dev/null'

LINKS_OF_ONE = 'cd "$1" && [ -d @WORK@ ] && find @WORK@ -type l -lname "$2" -print0'

NOTHING = "0:0:0"
"""What an empty folder measures."""

RESULTS = "results"


class There(msgspec.Struct, frozen=True):
    """What a site has of a run: whether its job has written its ending, and what is in its folders."""

    ended: bool
    outputs: str
    checkpoints: str


class Fetched(msgspec.Struct, frozen=True, kw_only=True):
    """What came home of a run, and how."""

    id: str
    context: str
    target: str
    """The folder here; empty if the run has written nothing."""
    files: int = 0
    """How many files were sent; those that were here already are not."""
    size: int = 0
    """Their bytes."""
    way: str = ""
    """rsync, or tar where one side has no rsync; empty if nothing had to come."""
    whole: bool = False
    """Whether all results of a run that has ended are here now."""


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """What of runs is to come, and where to."""

    only: Sequence[str] = ()
    everything: bool = False
    folder: Path | None = None
    several: bool = False
    """Whether the folder gets one of its own for each run."""
    names: Mapping[str, str] = {}
    """What that is called, if not as the run."""

    def target(self, run: Run) -> Path:
        if self.folder is None:
            # Apart: a result may have the name of one of the run's own files.
            return Path(RESULTS) / (f"{run.id}.all" if self.everything else run.id)
        return self.folder / self.names.get(run.id, run.id) if self.several else self.folder


Found = tuple[Entry, There]


def together(found: Sequence[Found], wanted: Wanted) -> list[list[Found]]:
    """Runs that can come in one transfer: of one project, to one folder."""
    groups: dict[tuple[Path, str], list[Found]] = {}
    for entry, there in found:
        groups.setdefault((wanted.target(entry.run).parent, _project(entry.run)), []).append((entry, there))
    return list(groups.values())


class Transfer:
    """The results of runs on their way."""

    def __init__(self, store: Store, host: Host, group: Sequence[Found], wanted: Wanted, *, has_rsync: bool) -> None:
        self._store, self._host, self._group, self._wanted = store, host, group, wanted
        self._has_rsync = has_rsync
        # A folder means what is in it.
        self._only = [f"{glob}**" if glob.endswith("/") else glob for glob in wanted.only]

    def run(self, watch: Watch) -> tuple[list[Fetched], list[YurtError]]:
        """Bring it all. Returns what came of each, and an error for those that have nothing of what was asked for."""
        come = [each for each in self._group if each[1].outputs != NOTHING or self._wanted.everything]
        brought = {}
        if len(come) == 1:
            brought = {come[0][0].run.id: self._one(come[0][0].run, watch)}
        elif come:
            brought = self._many([entry.run for entry, _there in come], watch)
        done, lacking = [], []
        for entry, there in self._group:
            way, came = brought.get(entry.run.id, ("", None))
            if self._only and (came is None or not came.matched):
                lacking.append(entry.run)
            else:
                done.append(self._fetched(entry, there, way, came))
        return done, [self._no_match(lacking)] if lacking else []

    def _fetched(self, entry: Entry, there: There, way: str, came: Brought | None) -> Fetched:
        run = entry.run
        if came is None:
            return Fetched(id=run.id, context=run.context, target="", whole=self._note(entry, there, None))
        target = self._wanted.target(run)
        return Fetched(
            id=run.id,
            context=run.context,
            target=shown(str(target)),
            files=came.files,
            size=came.size,
            way=way,
            whole=self._note(entry, there, target) if not self._only and not came.vanished else False,
        )

    def _one(self, run: Run, watch: Watch) -> tuple[str, Brought]:
        without = ["pycache", *self._links(LINKS_OF_ONE, run.folder, run)] if self._wanted.everything else []
        target = self._wanted.target(run)
        with self._made([target], self._wanted.folder is None):
            progress = _progress(watch, run.id)
            return self._bring(self._source(run), target, Pick(self._only, without), progress)

    def _many(self, runs: Sequence[Run], watch: Watch) -> dict[str, tuple[str, Brought]]:
        """Through a folder of links, so that each has the name it shall have here."""
        targets = {run.id: self._wanted.target(run) for run in runs}
        names = {run.id: targets[run.id].name for run in runs}
        gathered = f"{_project(runs[0])}/incoming/fetch.{os.urandom(4).hex()}"
        watch(Event(f"gathering what {len(runs)} runs wrote on {runs[0].context}"))
        lines = "".join(f"{names[run.id]}\n{self._source(run)}\n" for run in runs)
        try:
            answer = self._host.run(GATHER, gathered, stdin=lines.encode(), timeout=600)
            if answer.code:
                raise refusal(self._host.name, "the run folders could not be gathered", answer.errors)
            without = []
            if self._wanted.everything:
                without = [f"{name}/pycache" for name in names.values()]
                without += [path.removeprefix("./") for path in self._links(LINKS, gathered, runs[0])]
            only = [f"/*{glob}" if glob.startswith("/") else glob for glob in self._only]
            with self._made(list(targets.values()), self._wanted.folder is None):
                progress = _progress(watch, f"{len(runs)} runs")
                parent = next(iter(targets.values())).parent
                way, brought = self._bring(gathered, parent, Pick(only, without), progress, list(names.values()))
        finally:
            with contextlib.suppress(YurtError):
                self._host.run(SCATTER, gathered)
        return {run: (way, brought.below[name]) for run, name in names.items()}

    def _source(self, run: Run) -> str:
        return run.folder if self._wanted.everything else f"{run.folder}/{layout.OUTPUTS}"

    def _bring(
        self, source: str, target: Path, pick: Pick, progress: Progress, names: Sequence[str] = ()
    ) -> tuple[str, Brought]:
        if self._has_rsync and rsync.usable():
            with contextlib.suppress(rsync.Strange):
                return "rsync", rsync.bring(self._host, source, target, pick, progress, names=names)
        return "tar", tar.bring(self._host, source, target, pick, progress, names=names)

    @contextlib.contextmanager
    def _made(self, targets: Sequence[Path], ignored: bool) -> Iterator[None]:
        """The folders results go to; those that nothing came into are not left behind."""
        fresh = [each for each in (targets[0].parent,) if not each.exists()]
        made = [*(target for target in targets if _make(target, ignored=ignored)), *fresh]
        try:
            yield
        except BaseException:
            _remove_empty(made)
            raise
        if self._only:
            _remove_empty(made)

    def _links(self, script: str, folder: str, run: Run) -> list[str]:
        """Links into the code, which is no result: what is below work/ and is not the run's own."""
        pattern = re.sub(r"([*?\[\\])", r"\\\1", f"{_project(run)}/snapshots/") + "*"
        answer = self._host.run(layout.fill_in(script), folder, pattern, timeout=600)
        return [os.fsdecode(name) for name in answer.out.split(b"\0") if name]

    def _note(self, entry: Entry, there: There, target: Path | None) -> bool:
        """Remember what came home; whether that is all there will ever be."""
        if not (entry.status.final or there.ended) or "?" in (there.outputs, there.checkpoints):
            return False
        if target is not None:
            self._store.note_fetched(
                entry.run.id,
                Copy(
                    target=bytes(target.absolute()),
                    at=time.time(),
                    outputs=there.outputs,
                    checkpoints=there.checkpoints if self._wanted.everything else "",
                ),
            )
        return True

    def _no_match(self, runs: Sequence[Run]) -> YurtError:
        globs = ", ".join(f"'{shown(glob)}'" for glob in self._wanted.only)
        where = "run folder" if self._wanted.everything else layout.OUTPUTS
        of = f"run {runs[0].id}" if len(runs) == 1 else f"{len(runs)} runs ({runs[0].id} …)"
        return NotFoundError(
            f"no file in the {where} of {of} is called {globs}",
            code="not-found",
            hint=f"all of them: yurt fetch {runs[0].id}",
        )


def _project(run: Run) -> str:
    """The folder of a run's project on its site."""
    return re.split(rf"/(?:runs|sweeps)/[^/]+(?:/{layout.TASKS}/\d+)?$", run.folder)[0]


def _remove_empty(folders: Sequence[Path]) -> None:
    for folder in folders:
        with contextlib.suppress(OSError):  # something has arrived
            folder.rmdir()


def _progress(watch: Watch, label: str) -> Progress:
    def progress(size: int, percent: int) -> None:
        watch(Event(f"fetching {label}: {size / 1e6:.1f} MB", percent, 100 if percent else 0))

    return progress


def shown(text: str) -> str:
    """A path as text, whatever bytes it is made of."""
    return text.encode(errors="surrogateescape").decode(errors="backslashreplace")


def _make(target: Path, *, ignored: bool) -> bool:
    """Make the folder results go to; False if it is there. `results` keeps itself out of git, and so out of code."""
    try:
        if ignored:
            home = target.parent
            home.mkdir(exist_ok=True)
            if not (home / ".gitignore").exists():
                (home / ".gitignore").write_text("*\n")
        if target.is_dir():
            return False
        target.mkdir(parents=True)
    except (FileExistsError, NotADirectoryError):
        raise UserError(f"{shown(str(target))} is no folder", code="usage", hint="--to DIR") from None
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise rsync.here_is_full(target, error.strerror or "") from None
        raise RefusedError(
            f"{shown(str(target))} cannot be made: {error.strerror}", code="site-refused", hint="--to DIR"
        ) from None
    return True
