"""Takes a snapshot: files as they are on disk, written as a git tree into a git folder of yurt's own."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from yurt.errors import UserError
from yurt.snapshot import collect, git

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
    largest_file: int = LARGEST_FILE,
    largest_tree: int = LARGEST_TREE,
) -> Snapshot:
    """A snapshot of the project in `root`, kept in the git folder `store`, which is made if absent.

    Nothing is written into the user's own repository. Two at once wait for each other. Raises
    UserError for a file or a tree that is too large, naming it.
    """
    store.mkdir(mode=0o700, parents=True, exist_ok=True)
    with _locked(store):
        _make(store)
        with _empty_index(store) as own:
            names = collect.collect(root, own, include=include, exclude=exclude)
        size = _weigh(root, names, largest_file, largest_tree)
        _update_index(root, store, names)
        tree = git.call(["write-tree"], folder=root, own=store).decode().strip()
    return Snapshot(tree, len(names), size, store)


def _make(store: Path) -> None:
    """A git folder with nothing in it; HEAD comes last, and with it git sees a repository."""
    if (store / "HEAD").exists():
        return
    for folder in ("objects/info", "objects/pack", "refs/heads", "info"):
        (store / folder).mkdir(parents=True, exist_ok=True)
    (store / "config").write_text(CONFIG)
    (store / "info" / "attributes").write_text(ATTRIBUTES)
    (store / "HEAD.new").write_text("ref: refs/heads/none\n")
    (store / "HEAD.new").rename(store / "HEAD")


@contextlib.contextmanager
def _locked(store: Path) -> Iterator[None]:
    descriptor = os.open(store / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        (store / "index.lock").unlink(missing_ok=True)  # a leftover of a killed git: nobody else is here
        yield
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def _empty_index(store: Path) -> Iterator[Path]:
    """A second git folder beside the store, in which nothing is tracked: it answers what is ignored."""
    blank = store / "blank"
    (blank / "info").mkdir(parents=True, exist_ok=True)
    for name in ("objects", "refs"):
        (blank / name).mkdir(exist_ok=True)
    for name in ("config", "HEAD"):
        if not (blank / name).exists():
            (blank / name).write_text((store / name).read_text())
    yield blank


def _weigh(root: Path, names: Sequence[bytes], largest_file: int, largest_tree: int) -> int:
    """The size of all files; UserError names the culprit where it is too much."""
    total, largest, culprit = 0, -1, b""
    base = os.fsencode(root)
    for name in names:
        size = os.lstat(os.path.join(base, name)).st_size
        total += size
        if size > largest:
            largest, culprit = size, name
    shown = os.fsdecode(culprit).encode(errors="backslashreplace").decode()
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


def _update_index(root: Path, store: Path, names: Sequence[bytes]) -> None:
    """Make the index hold exactly these files; those git knows to be unchanged are not read again."""
    known = set(git.call(["ls-files", "-z"], folder=root, own=store).split(b"\0")) - {b""}
    gone = known - set(names)
    if gone:
        doomed = b"\0".join(sorted(gone)) + b"\0"
        git.call(["update-index", "--force-remove", "-z", "--stdin"], folder=root, own=store, stdin=doomed)
    if names:
        wanted = b"\0".join(names) + b"\0"
        git.call(["update-index", "--add", "--replace", "-z", "--stdin"], folder=root, own=store, stdin=wanted)
