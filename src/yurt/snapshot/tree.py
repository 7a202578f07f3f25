"""Takes a snapshot: writes files as they are on disk as a git tree into yurt's own git folder."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path

import msgspec

from yurt import private
from yurt.errors import NotFoundError, UserError, here_is_full
from yurt.model.sizes import MB, megabytes
from yurt.snapshot import collect, record, seen

LARGEST_FILE = 50 * MB
LARGEST_TREE = 1000 * MB

# Content is stored byte for byte: line endings, filters, keywords and encodings are not applied.
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
    """The code of a run. `tree` identifies it: equal trees mean equal files."""

    tree: str
    files: int
    size: int
    store: Path
    """The git folder that contains it."""
    secrets: list[str] = []
    """Files that were left out because they look like secrets."""
    absent: list[str] = []
    """Those of the `named` files and folders that it does not contain."""
    special: list[str] = []
    """Pipes, sockets and devices, which are left out."""


def take(
    root: Path,
    store: Path,
    *,
    include: Sequence[str] = (),
    add: Sequence[str] = (),
    exclude: Sequence[str] = (),
    also: Sequence[Path] = (),
    apart: Sequence[Path] = (),
    named: Sequence[str] = (),
    while_git_runs: Callable[[], object] = lambda: None,
    largest_file: int = LARGEST_FILE,
    largest_tree: int = LARGEST_TREE,
) -> Snapshot:
    """Take a snapshot of the project in `root` and store it in the git folder `store`, which is created if absent.

    `include` and `add` are globs of ignored files that it contains, too; of the latter, those that do not look like
    secrets. `also` are files and folders outside the project, which are added under their last name at its top.
    `apart` are folders of yurt, which are left out if the project contains them.
    `named` are paths to look for in the snapshot. `while_git_runs` is called while git lists the files. Nothing is
    written to the user's own repository. Files that look like secrets are left out, unless `include` matches them.
    Concurrent snapshots wait for each other. UserError, with the name, for a file or a tree that is too large and for
    a file that cannot be read.
    """
    if not root.is_dir():
        raise NotFoundError(f"folder '{root}' not found", code="not-found")
    root, store = root.absolute(), store.absolute()  # git runs in other folders
    with _writing(store), _locked(store):
        _make(store)
        collecting = collect.Collecting(
            root, store / "blank", include=include, add=add, exclude=exclude, apart=apart, since=seen.since(store)
        )
        last = seen.load(store)
        collecting.stat_early(last.files)
        while_git_runs()
        files = collecting.files()
        left_out = [collect.shown(name) for name in collecting.special(store)]
        elsewhere, hidden = collect.add_outside(
            [each.absolute() for each in also], store / "blank", files, exclude=exclude
        )
        size = _check_size(files, largest_file, largest_tree)
        tree, count, withheld = record.record(root, store, files, last, elsewhere, allowed=collecting.included)
    names = sorted(collect.shown(name) for name in (*withheld, *collecting.secrets, *hidden))
    return Snapshot(tree, count, size, store, names, _absent(named, files.keys() | collecting.secrets), left_out)


def _absent(named: Sequence[str], files: Collection[bytes]) -> list[str]:
    """Return the paths that are neither files nor folders of files."""
    left = [each for each in named if os.fsencode(each) not in files]
    folders = {os.fsencode(each) + b"/" for each in left}
    full = {folder for folder in folders if any(file.startswith(folder) for file in files)}
    return [each for each in left if os.fsencode(each) + b"/" not in full]


def mark_damaged(store: Path) -> None:
    """Make the next snapshot rebuild the store, in which git found an error."""
    (store / "distrusted").touch(mode=0o600)


def _make(store: Path) -> None:
    """Create an empty git folder. HEAD is written last: git needs it to recognise a repository."""
    if (store / "distrusted").exists():
        for name in ("objects", "seen", "HEAD", "distrusted"):
            _remove(store / name)
    if not (store / "HEAD").exists():
        # A second one inside, in which nothing is ever tracked, is used to list ignored files.
        for folder in (store / "blank", store):
            for name in ("objects/info", "objects/pack", "refs/heads", "info"):
                private.make_folder(folder / name)
            private.write(folder / "config", CONFIG.encode())
            private.write(folder / "info" / "attributes", ATTRIBUTES.encode())
            private.write(folder / "HEAD.new", b"ref: refs/heads/none\n")
            (folder / "HEAD.new").rename(folder / "HEAD")
    aside = store / "aside"
    if aside.exists():  # left by a killed snapshot; the lock excludes others
        _remove(aside)


def _remove(path: Path) -> None:
    if path.is_dir():
        import shutil

        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


@contextlib.contextmanager
def _writing(store: Path) -> Iterator[None]:
    """Convert errors of a full disk or quota to RefusedError."""
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise here_is_full(store, error.strerror or "", hint="free some space") from None


@contextlib.contextmanager
def _locked(store: Path) -> Iterator[None]:
    private.make_folder(store)
    descriptor = os.open(store / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _check_size(files: collect.Files, largest_file: int, largest_tree: int) -> int:
    """Return the total size of the files. UserError, with the largest file, if it exceeds a limit."""
    sizes = [about.st_size for about in files.values()]
    total, largest = sum(sizes), max(sizes, default=0)
    if largest <= largest_file and total <= largest_tree:
        return total
    name_of_largest = max(name for name, about in files.items() if about.st_size == largest)
    shown = collect.shown(name_of_largest)
    if largest > largest_file:
        raise UserError(
            f"'{shown}' is {megabytes(largest)} MB; the limit for a code file is {megabytes(largest_file)} MB",
            code="snapshot-too-large",
            hint=f"exclude it with `--exclude '{shown}'` or a line in .yurtignore, copy it to the cluster as data, "
            "or raise the limit with `--largest-file MB`",
        )
    raise UserError(
        f"the project is {megabytes(total)} MB; the limit is {megabytes(largest_tree)} MB; "
        f"the largest file is '{shown}' ({megabytes(largest)} MB)",
        code="snapshot-too-large",
        hint="exclude data files with `--exclude GLOB` or .yurtignore",
    )
