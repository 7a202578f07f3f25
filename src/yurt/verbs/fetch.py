"""fetch: what runs wrote comes home; by rsync, or as tar streams where one side has none."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import time
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import msgspec

from yurt.config import contexts
from yurt.errors import NotFoundError, RefusedError, UnreachableError, UserError, YurtError
from yurt.hosts import Host, host_of, rsync, tar
from yurt.hosts.base import refusal
from yurt.hosts.rsync import Brought, Pick, Progress
from yurt.model.progress import Event, Watch, unwatched
from yurt.model.run import Run
from yurt.store import Copy, Entry, Store

LOOK = """\
if command -v rsync > /dev/null 2>&1; then echo rsync; else echo tar; fi
for folder; do
  cd "$folder" 2> /dev/null || { echo gone && continue; }
  if [ -e exit.json ] || [ -e exit.json.d ]; then ended=ended; else ended=going; fi
  echo "$ended $(measure outputs) $(measure checkpoints)"
done
"""

LINKS = 'cd "$1" && [ -d work ] && find work -type l -lname "$2" -print0'

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

    def target(self, run: Run) -> Path:
        if self.folder is None:
            # Apart: a result may have the name of one of the run's own files.
            return Path(RESULTS) / (f"{run.id}.all" if self.everything else run.id)
        return self.folder / run.id if self.several else self.folder


@cache
def measure() -> str:
    """The shell function that says what is in a folder."""
    return (Path(__file__).parent / "measure.sh").read_text()


def fetch(
    store: Store, entries: Sequence[Entry], wanted: Wanted, *, watch: Watch = unwatched
) -> tuple[list[Fetched], list[YurtError]]:
    """Bring results of runs here, those of each context over one connection.

    Returns what came, and the errors of runs of which not all came: what has arrived is kept, repeating goes on.
    """
    by_context: dict[str, list[Entry]] = {}
    for entry in entries:
        by_context.setdefault(entry.run.context, []).append(entry)
    done: list[Fetched] = []
    errors: list[YurtError] = []
    for name, group in by_context.items():
        try:
            watch(Event(f"looking at {name}"))
            host = host_of(contexts.named(name))
            errors += [_gone(store, entry) for entry in group if _inside(entry)]
            out = [entry for entry in group if not _inside(entry)]
            if not out:
                continue
            has_rsync, there = look(host, [entry.run for entry in out])
            for number, entry in enumerate(out, 1):
                label = entry.run.id + (f" ({number} of {len(out)})" if len(out) > 1 else "")
                try:
                    found = there.get(entry.run.id)
                    if found is None:
                        raise _gone(store, entry)
                    transfer = _Transfer(store, host, entry, found, wanted, has_rsync=has_rsync)
                    done.append(transfer.run(label, watch))
                except UnreachableError:
                    raise
                except YurtError as error:
                    errors.append(error)
        except YurtError as error:  # the rest of this site has to wait, others need not
            errors.append(error)
    return done, errors


def look(host: Host, runs: Sequence[Run]) -> tuple[bool, dict[str, There]]:
    """Whether a site has rsync, and what it has of runs; those whose folder is gone are left out."""
    answer = host.run(measure() + LOOK, *(run.folder for run in runs), timeout=600)
    if answer.code:
        raise refusal(host.name, "the run folders could not be looked at", answer.errors)
    way, *lines = answer.text.splitlines()
    there = {}
    for run, line in zip(runs, lines, strict=True):
        if line != "gone":
            ended, outputs, checkpoints = line.split()
            there[run.id] = There(ended == "ended", outputs, checkpoints)
    return way == "rsync", there


def _inside(entry: Entry) -> bool:
    """Whether a run surely has not left this machine, so that no site need be asked."""
    return entry.status.state in ("waiting", "submitting") and entry.status.attempts == 0


def _gone(store: Store, entry: Entry) -> YurtError:
    """Why there is no folder to fetch from."""
    run, status = entry.run, entry.status
    at = store.gone_at(run.id) or store.going_since(run.id)
    copies = [copy for copy in store.copies(run.id) if Path(os.fsdecode(copy.target)).is_dir()]
    if at is not None:
        when = time.strftime("%Y-%m-%d %H:%M", time.localtime(at))
        why = f"its folder was removed from {run.context} by yurt prune on {when}"
    elif status.submitted is None and status.started is None:
        why = f"it {'never went' if status.final else 'has not gone'} out to {run.context}"
    else:
        why = f"its folder is gone from {run.context}, by a purge or by hand: {run.folder}"
    return NotFoundError(
        f"run {run.id} cannot be fetched: {why}",
        code="not-found",
        hint=f"an earlier copy is in {shown(os.fsdecode(copies[0].target))}" if copies else f"yurt show {run.id}",
    )


class _Transfer:
    """The results of one run on their way."""

    def __init__(
        self, store: Store, host: Host, entry: Entry, there: There, wanted: Wanted, *, has_rsync: bool
    ) -> None:
        self._store, self._host, self._there, self._wanted = store, host, there, wanted
        self._run, self._final = entry.run, entry.status.final
        self._has_rsync = has_rsync

    def run(self, label: str, watch: Watch) -> Fetched:
        run, wanted = self._run, self._wanted
        if self._there.outputs == NOTHING and not wanted.everything:
            if wanted.only:
                raise self._no_match()
            return Fetched(id=run.id, context=run.context, target="", whole=self._note(None))
        source = run.folder if wanted.everything else f"{run.folder}/outputs"
        without = ["pycache", *self._links()] if wanted.everything else []
        # A folder means what is in it.
        only = [f"{glob}**" if glob.endswith("/") else glob for glob in wanted.only]
        target = wanted.target(run)
        made = _make(target, ignored=wanted.folder is None)

        def progress(size: int, percent: int) -> None:
            watch(Event(f"fetching {label}: {size / 1e6:.1f} MB", percent, 100 if percent else 0))

        try:
            way, brought = self._bring(source, target, Pick(only, without), progress)
            if only and not brought.matched:
                raise self._no_match()
        except BaseException:
            if made:
                with contextlib.suppress(OSError):  # unless something has arrived
                    target.rmdir()
            raise
        return Fetched(
            id=run.id,
            context=run.context,
            target=shown(str(target)),
            files=brought.files,
            size=brought.size,
            way=way,
            whole=self._note(target) if not only and not brought.vanished else False,
        )

    def _bring(self, source: str, target: Path, pick: Pick, progress: Progress) -> tuple[str, Brought]:
        if self._has_rsync and rsync.usable():
            with contextlib.suppress(rsync.Strange):
                return "rsync", rsync.bring(self._host, source, target, pick, progress)
        return "tar", tar.bring(self._host, source, target, pick, progress)

    def _links(self) -> list[str]:
        """Links into the code, which is no result: what is below work/ and is not the run's own."""
        code = self._run.folder.rpartition("/runs/")[0] + "/snapshots/"
        pattern = re.sub(r"([*?\[\\])", r"\\\1", code) + "*"
        answer = self._host.run(LINKS, self._run.folder, pattern)
        return [os.fsdecode(name) for name in answer.out.split(b"\0") if name]

    def _note(self, target: Path | None) -> bool:
        """Remember what came home; whether that is all there will ever be."""
        there = self._there
        if not (self._final or there.ended) or "?" in (there.outputs, there.checkpoints):
            return False
        if target is not None:
            self._store.note_fetched(
                self._run.id,
                Copy(
                    target=bytes(target.absolute()),
                    at=time.time(),
                    outputs=there.outputs,
                    checkpoints=there.checkpoints if self._wanted.everything else "",
                ),
            )
        return True

    def _no_match(self) -> YurtError:
        globs = ", ".join(f"'{shown(glob)}'" for glob in self._wanted.only)
        where = "run folder" if self._wanted.everything else "outputs"
        return NotFoundError(
            f"no file in the {where} of run {self._run.id} is called {globs}",
            code="not-found",
            hint=f"all of them: yurt fetch {self._run.id}",
        )


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
