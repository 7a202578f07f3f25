"""Takes a snapshot: files as they are on disk, written as a git tree into a git folder of yurt's own."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from yurt.errors import NotFoundError, RefusedError, UserError
from yurt.snapshot import collect, record, seen

LARGEST_FILE = 50 << 20
LARGEST_TREE = 1 << 30

# Content is kept to the byte: no line endings, filters, keywords or encodings are touched.
ATTRIBUTES = "* -text -filter -ident -export-subst -export-ignore -working-tree-encoding -eol\n"
CONFIG = """\
[core]
\trepositoryformatversion = 0
\tbare = false
\tautocrlf = false
\tsafecrlf = false
\tfileMode = true
\tsymlinks = true
\tignoreCase = false
\tprotectNTFS = false
\tprotectHFS = false
\tattributesFile = /dev/null
\texcludesFile = /dev/null
\tcompression = 1
\tfsync = none
[gc]
\tauto = 0
"""


class Snapshot(msgspec.Struct, frozen=True):
    """The code of a run. `tree` names it: equal trees are equal files."""

    tree: str
    files: int
    size: int
    store: Path
    """The git folder that holds it."""


def take(
    root: Path,
    store: Path,
    *,
    include: Sequence[str] = (),
    exclude: Sequence[str] = (),
    also: Sequence[Path] = (),
    largest_file: int = LARGEST_FILE,
    largest_tree: int = LARGEST_TREE,
) -> Snapshot:
    """A snapshot of the project in `root`, kept in the git folder `store`, which is made if absent.

    `also` are files and folders from elsewhere, which stand under their last name at the top of the project.
    Nothing is written into the user's own repository. Two at once wait for each other. Raises
    UserError for a file or a tree that is too large and for a file that cannot be read, naming it.
    """
    if not root.is_dir():
        raise NotFoundError(f"there is no folder '{root}'", code="not-found")
    root, store = root.absolute(), store.absolute()  # git is called in other folders
    with _writing(store), _locked(store):
        _make(store)
        collecting = collect.Collecting(root, store / "blank", include=include, exclude=exclude)
        last = seen.load(store)
        collecting.look_ahead(last.files)
        files = collecting.files()
        elsewhere = collect.from_elsewhere([each.absolute() for each in also], store / "blank", files, exclude=exclude)
        size = _weigh(files, largest_file, largest_tree)
        tree, count = record.record(root, store, files, last, elsewhere)
    return Snapshot(tree, count, size, store)


def distrust(store: Path) -> None:
    """Have the store made anew by the next snapshot: git found something in it that cannot be."""
    (store / "distrusted").touch()


def _make(store: Path) -> None:
    """A git folder with nothing in it; HEAD comes last, and with it git sees a repository."""
    if (store / "distrusted").exists():
        for name in ("objects", "seen", "HEAD", "distrusted"):
            _remove(store / name)
    if not (store / "HEAD").exists():
        # A second one in it, in which nothing is ever tracked, answers what is ignored.
        for folder in (store / "blank", store):
            for name in ("objects/info", "objects/pack", "refs/heads", "info"):
                (folder / name).mkdir(parents=True, exist_ok=True)
            (folder / "config").write_text(CONFIG)
            (folder / "info" / "attributes").write_text(ATTRIBUTES)
            (folder / "HEAD.new").write_text("ref: refs/heads/none\n")
            (folder / "HEAD.new").rename(folder / "HEAD")
    aside = store / "aside"
    if aside.exists():  # a leftover of a killed one: nobody else is here
        _remove(aside)


def _remove(path: Path) -> None:
    if path.is_dir():
        import shutil

        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


@contextlib.contextmanager
def _writing(store: Path) -> Iterator[None]:
    """What is wrong with the disk in the words of every other such error."""
    try:
        yield
    except OSError as error:
        full = {errno.ENOSPC: ("disk-full", "the disk is full"), errno.EDQUOT: ("quota-full", "your quota is used up")}
        if error.errno not in full:
            raise
        code, words = full[error.errno]
        raise RefusedError(f"{store} could not be written: {words}", code=code, hint="free some space") from None


@contextlib.contextmanager
def _locked(store: Path) -> Iterator[None]:
    store.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(store / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _weigh(files: collect.Files, largest_file: int, largest_tree: int) -> int:
    """The size of all files; UserError names the culprit where it is too much."""
    total = sum([about.st_size for about in files.values()])
    if not files:
        return total
    largest, culprit = max((about.st_size, name) for name, about in files.items())
    shown = collect.shown(culprit)
    if largest > largest_file:
        raise UserError(
            f"'{shown}' has {largest >> 20} MB; code files may have {largest_file >> 20} MB",
            code="snapshot-too-large",
            hint=f"leave it out (--exclude '{shown}', or a line in .yurtignore), or put it on the cluster as data",
        )
    if total > largest_tree:
        raise UserError(
            f"the project has {total >> 20} MB of files, and {largest_tree >> 20} MB are the most; "
            f"the largest is '{shown}' with {largest >> 20} MB",
            code="snapshot-too-large",
            hint="leave data out with --exclude or .yurtignore",
        )
    return total
