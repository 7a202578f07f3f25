"""A snapshot contains the exact bytes on disk, for any type of folder, without changes to the user's repository."""

from __future__ import annotations

import contextlib
import os
import socket
import stat
import subprocess
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.snapshot.conftest import AWKWARD, write_awkward
from yurt.errors import NotFoundError, RefusedError, UserError
from yurt.lifecycle.plan import code
from yurt.snapshot import Snapshot, collect, git, record, secrets, take


@pytest.fixture
def project(tmp_path: Path) -> Path:
    found = tmp_path / "pro ject"
    found.mkdir()
    return found


def sh(folder: Path, script: str) -> str:
    quiet = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b"}
    quiet |= {"GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b"}
    done = subprocess.run(
        ["bash", "-ec", script], cwd=folder, env={**os.environ, **quiet}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def content(snapshot: Snapshot) -> dict[bytes, tuple[str, bytes]]:
    """Path -> (mode, bytes) of the files in a snapshot, read back with git."""
    listing = git.call(["ls-tree", "-r", "-z", "--full-tree", snapshot.tree], folder=snapshot.store, own=snapshot.store)
    found = {}
    for row in listing.split(b"\0")[:-1]:
        about, path = row.split(b"\t", 1)
        mode, _kind, blob = about.decode().split()
        found[path] = (mode, git.call(["cat-file", "blob", blob], folder=snapshot.store, own=snapshot.store))
    return found


def on_disk(root: Path, names: set[bytes]) -> dict[bytes, tuple[str, bytes]]:
    found = {}
    for name in names:
        path = os.path.join(os.fsencode(root), name)
        if os.path.islink(path):
            found[name] = ("120000", os.readlink(path))
        else:
            mode = "100755" if os.stat(path).st_mode & stat.S_IXUSR else "100644"
            found[name] = (mode, Path(os.fsdecode(path)).read_bytes())
    return found


def test_plain_folder_with_awkward_names(project: Path, store: Path) -> None:
    write_awkward(project)
    (project / "dangling").symlink_to("/no/where")
    (project / "crlf.txt").write_bytes(b"one\r\ntwo\r\n")
    expected = on_disk(project, {*AWKWARD, b"run.sh", b"link", b"dangling", b"crlf.txt"})
    assert content(take(project, store)) == expected


def test_repository_with_changes_of_every_kind(project: Path, store: Path) -> None:
    sh(
        project,
        "git init -q; echo tracked > tracked; echo old > changed; echo x > deleted; echo s > staged-then-changed",
    )
    sh(
        project,
        "printf 'ignored\\nlogs/\\n*.secret\\n' > .gitignore; git add -A; git commit -qm one; git rm -q --cached changed",
    )
    sh(
        project,
        "echo new > changed; rm deleted; echo now > staged-then-changed; git add staged-then-changed; echo later > staged-then-changed",
    )
    sh(
        project,
        "echo u > untracked; echo i > ignored; mkdir logs; echo l > logs/l; echo s > a.secret; git add -f a.secret",
    )
    found = content(take(project, store))
    assert set(found) == {b".gitignore", b"tracked", b"changed", b"staged-then-changed", b"untracked", b"a.secret"}
    assert found[b"changed"][1] == b"new\n" and found[b"staged-then-changed"][1] == b"later\n"


def test_attributes_and_settings_change_nothing(project: Path, store: Path) -> None:
    """Line endings, filters, keywords and encodings set in a repository are not applied."""
    sh(project, "git init -q; git config core.autocrlf true; git config filter.up.clean 'tr a-z A-Z'")
    (project / ".gitattributes").write_text("*.txt text eol=crlf filter=up ident\n*.u16 working-tree-encoding=UTF-16\n")
    (project / "a.txt").write_bytes(b"$Id$ lower\r\nnext\n")
    (project / "b.u16").write_bytes("x\r\n".encode("utf-16"))
    sh(project, "git add -A 2> /dev/null || true")
    found = content(take(project, store))
    assert found[b"a.txt"][1] == b"$Id$ lower\r\nnext\n" and found[b"b.u16"][1] == "x\r\n".encode("utf-16")


def test_submodules_and_nested_repositories(project: Path, store: Path, tmp_path: Path) -> None:
    library = tmp_path / "library"
    library.mkdir()
    sh(library, "git init -q; echo lib > lib.py; echo skip > .gitignore; git add -A; git commit -qm lib")
    sh(
        project,
        f"git init -q; git -c protocol.file.allow=always submodule -q add '{library}' deps/lib; git commit -qm sub",
    )
    sh(project, "echo changed > deps/lib/lib.py; echo new > deps/lib/new.py; echo x > deps/lib/skip")
    sh(project, "mkdir -p nested/empty-repo; cd nested; git init -q; echo n > n.py; git add n.py; git commit -qm n")
    sh(project, "cd nested/empty-repo; git init -q; echo deep > deep.py")
    found = content(take(project, store))
    assert {name for name in found if name != b".gitmodules"} == {
        b"deps/lib/.gitignore",
        b"deps/lib/lib.py",
        b"deps/lib/new.py",
        b"nested/n.py",
        b"nested/empty-repo/deep.py",
    }
    assert found[b"deps/lib/lib.py"][1] == b"changed\n"


def test_subfolder_of_a_repository(project: Path, store: Path) -> None:
    sh(
        project,
        "git init -q; mkdir -p sub/x; echo o > outside; echo i > sub/x/inside; git add -A; git commit -qm one; echo n > sub/new",
    )
    assert set(content(take(project / "sub", store))) == {b"x/inside", b"new"}


def test_folder_inside_an_ignored_folder(project: Path, store: Path) -> None:
    """The surrounding repository ignores it; files it ignores itself are excluded, tracked ones are included."""
    sh(
        project,
        "git init -q; echo scratch/ > .gitignore; mkdir -p scratch/inner/x; cd scratch/inner; echo '*.log' > .gitignore",
    )
    sh(
        project / "scratch" / "inner",
        "echo a > a; echo b > x/b; echo l > x/l.log; echo f > x/forced.log; git add -f x/forced.log",
    )
    assert set(content(take(project / "scratch" / "inner", store))) == {b".gitignore", b"a", b"x/b", b"x/forced.log"}


def test_plain_folder_outside_a_repository_uses_its_own_gitignore(project: Path, store: Path) -> None:
    sh(
        project,
        "echo '*.log' > .gitignore; mkdir x; echo a > x/a; echo l > x/l.log; echo x/a.tmp > .yurtignore; echo t > x/a.tmp",
    )
    assert set(content(take(project, store))) == {b".gitignore", b".yurtignore", b"x/a"}


def test_repository_of_somebody_else_is_taken_as_a_plain_folder(project: Path, store: Path) -> None:
    """Git refuses a repository of another user; its files are included anyway."""
    sh(project, "git init -q; echo a > a; echo x > .gitignore; echo x > x; git add -A; git commit -qm one")
    if os.geteuid() == 0:
        os.chown(project, 65534, 65534)
        os.chown(project / ".git", 65534, 65534)
    else:
        (project / ".git" / "HEAD").write_text("no repository any more\n")
    assert set(content(take(project, store))) == {b".gitignore", b"a"}


def test_tracked_files_behind_a_link_are_excluded(project: Path, store: Path, tmp_path: Path) -> None:
    """A folder was replaced by a link out of the project: git still lists its files."""
    sh(
        project,
        "git init -q; mkdir data; echo d > data/d; echo a > a; git add -A; git commit -qm one; mv data ../elsewhere",
    )
    sh(project, "ln -s ../elsewhere data")
    assert content(take(project, store)) == {b"a": ("100644", b"a\n"), b"data": ("120000", b"../elsewhere")}
    sh(project, "echo data >> .git/info/exclude")
    assert set(content(take(project, store))) == {b"a"}


def test_exclusions_apply_to_nested_repositories_too(project: Path, store: Path) -> None:
    sh(
        project,
        "git init -q; mkdir -p inner/deep; cd inner; git init -q; echo k > keep.py; echo b > deep/b.bin; echo w > w.pt; git add -A",
    )
    sh(
        project,
        "printf '*.bin\n/inner/w.pt\n' > .yurtignore; echo n > inner/deep/n.py; echo n.py > inner/deep/.yurtignore",
    )
    found = set(content(take(project, store)))
    assert found == {b".yurtignore", b"inner/keep.py", b"inner/deep/.yurtignore"}
    assert set(content(take(project, store, exclude=["inner/"]))) == {b".yurtignore"}
    (project / ".yurtignore").unlink()
    deep = {b"inner/keep.py", b"inner/w.pt", b"inner/deep/b.bin", b"inner/deep/.yurtignore"}
    assert set(content(take(project, store))) == deep, "one in a nested folder is enough"


def test_a_submodule_that_was_not_fetched(project: Path, store: Path) -> None:
    sh(project, "git init -q; echo a > a; git add a; git commit -qm one; mkdir sub")
    sh(project, "git update-index --add --cacheinfo 160000,$(git rev-parse HEAD),sub; echo s > sub/s")
    assert set(content(take(project, store))) == {b"a", b"sub/s"}


def test_an_index_that_names_files_outside_the_project(project: Path, store: Path, tmp_path: Path) -> None:
    """Git checks the names when it writes an index, not when it lists one that came with an archive."""
    outside = tmp_path / "outside"
    inside = project / str(outside)[1:]
    for folder in (outside, inside):
        folder.mkdir(parents=True)
        (folder / "key").write_text(folder.name)
    upwards = os.path.relpath(outside, project)
    sh(project, "git init -q; mkdir sub; echo a > a; echo b > sub/b")
    names = ["..", "a", "sub/b", upwards, f"{upwards}/key", f"sub/../{upwards}/key", f"{outside}/key", "//key"]
    (project / ".git" / "index").write_bytes(collect._index(sorted(map(os.fsencode, names))))
    assert set(content(take(project, store))) == {b"a", b"sub/b", os.fsencode(inside.relative_to(project)) + b"/key"}


@pytest.mark.parametrize("newer", [True, False])
def test_a_partial_clone_fetches_nothing(
    project: Path, store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, newer: bool
) -> None:
    """Git would start the program that the configuration of the repository names."""
    sh(project, "git init -q; echo x > .gitignore; echo a > a; git add -A; git commit -qm one")
    sh(project, "git update-index --skip-worktree .gitignore; rm .gitignore")
    sh(project, "git config core.repositoryformatversion 1; git config extensions.partialClone origin")
    sh(project, "git config remote.origin.promisor true; git config remote.origin.url ssh://host/x")
    sh(project, f"git config core.sshCommand 'touch {tmp_path}/ran; false'; rm -r .git/objects/??")
    if not newer:
        variables = git.environment() | {"GIT_NO_LAZY_FETCH": "0"}
        monkeypatch.setattr(git, "environment", lambda: variables)
    with contextlib.suppress(RefusedError):
        take(project, store)
    assert code.Commit(project).answer() == ("", "", "")
    assert not (tmp_path / "ran").exists()


def test_yurtignore_include_and_exclude(project: Path, store: Path) -> None:
    sh(
        project,
        "git init -q; mkdir -p data out; echo d > data/big; echo o > out/o; echo k > keep.py; echo t > tracked.bin; git add -A",
    )
    sh(
        project,
        "git commit -qm one; echo out/ >> .gitignore; echo extra > out/extra; printf 'data/\\n*.bin\\n!keep*\\n' > .yurtignore",
    )
    assert set(content(take(project, store))) == {b".gitignore", b".yurtignore", b"keep.py", b"out/o"}
    with_extra = content(take(project, store, include=["out/ext*"], exclude=["*.py"]))
    assert set(with_extra) == {b".gitignore", b".yurtignore", b"out/o", b"out/extra"}


@pytest.mark.parametrize("repository", [True, False])
def test_folders_of_yurt_are_left_out(project: Path, store: Path, tmp_path: Path, repository: bool) -> None:
    sh(project, "mkdir -p .yurt/data/runs .yurt/config/dev .yurt/database inner; echo a | tee a .yurt/database/a")
    sh(project, "echo b | tee .yurt/data/runs/b .yurt/config/dev/key .yurt/config/contexts.yaml > inner/c")
    if repository:
        sh(project, "git init -q; git add -A; git commit -qm one; echo new > .yurt/data/new; git init -q inner")
    link = tmp_path / "link"
    link.symlink_to(project)
    apart = [
        project / ".yurt" / "data",
        link / ".yurt" / "config" / "dev",
        tmp_path / "elsewhere",
        project.parent,
        project,
    ]
    kept = {b"a", b"inner/c", b".yurt/database/a", b".yurt/config/contexts.yaml"}
    assert set(content(take(project, store, apart=apart))) == kept
    assert set(content(take(project, store, apart=apart, include=[".yurt/**"]))) == kept


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    ("repository", "name"),
    [
        *product([True, False], [".gitignore", ".yurtignore", "src/.gitignore"]),
        (True, ".git/info/exclude"),
        (True, ".git/config"),
    ],
)
def test_a_pipe_that_git_would_wait_for(
    project: Path, store: Path, name: str, repository: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(git, "PATIENCE", 0.5)
    sh(project, "mkdir -p src; echo 1 > src/a; echo 2 > b")
    if repository:
        sh(project, "git init -q")
    (project / name).unlink(missing_ok=True)
    os.mkfifo(project / name)
    with pytest.raises(UserError, match=f"'{name}' is a pipe, not a file"):
        take(project, store)
    running = subprocess.run(["pgrep", "-f", f"git .*{project}"], capture_output=True, check=False)
    assert running.stdout == b""
    (project / name).unlink()
    assert take(project, store).files == 2


@pytest.mark.parametrize("repository", [True, False])
def test_pipes_and_sockets_are_named(project: Path, store: Path, repository: bool) -> None:
    sh(project, "mkdir -p a/b; echo 1 > a/b/code.py; echo '*.sock' > .gitignore; echo old > .yurtignore")
    if repository:
        sh(project, "git init -q && git add a .gitignore")
    assert take(project, store).special == []
    sh(project, "mkfifo a/b/pipe old a/it.sock \"$(printf 'two\\nlines')\"")
    with socket.socket(socket.AF_UNIX) as listener:
        before = os.getcwd()
        os.chdir(project)
        try:
            listener.bind("door")
        finally:
            os.chdir(before)
    found = take(project, store)
    assert sorted(found.special) == ["a/b/pipe", "door", "two\nlines"]
    os.utime(project / "a" / "b", (1, 1))  # they are named again, though nothing is new
    os.utime(project, (1, 1))
    assert take(project, store, exclude=["door"]).special == ["a/b/pipe", "two\nlines"]
    (project / "a" / "b" / "pipe").unlink()
    (project / "a" / "b" / "pipe").write_text("a file now")
    found = take(project, store)
    assert found.special == ["door", "two\nlines"] and b"a/b/pipe" in content(found)


def test_users_repository_is_never_written(project: Path, store: Path) -> None:
    sh(
        project,
        "git init -q; echo a > a; git add a; git commit -qm a; echo b > a; git stash -q; echo c > c; git add c; echo d > d",
    )

    def state() -> dict[str, tuple[int, bytes]]:
        files = (path for path in (project / ".git").rglob("*") if path.is_file())
        return {str(path): (path.stat().st_mtime_ns, path.read_bytes()) for path in files}

    os.utime(project / "a")  # git would now refresh its index
    before = state()
    take(project, store)
    assert state() == before


def test_the_users_git_environment_is_ignored(project: Path, store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (project / "a").write_text("a")
    monkeypatch.setenv("GIT_DIR", "/no/where")
    monkeypatch.setenv("GIT_INDEX_FILE", "/no/where")
    assert set(content(take(project, store))) == {b"a"}


def test_same_files_give_the_same_tree(project: Path, store: Path, tmp_path: Path) -> None:
    (project / "a").write_text("a")
    (project / "d").mkdir()
    (project / "d" / "b").write_text("b")
    first = take(project, store)
    assert take(project, store) == first
    assert take(project, tmp_path / "another.git").tree == first.tree
    (project / "a").chmod(0o755)
    second = take(project, store)
    assert second.tree != first.tree
    (project / "a").chmod(0o644)
    (project / "d" / "b").unlink()
    (project / "d").rmdir()
    (project / "d").write_text("a file where a folder was")
    assert set(content(take(project, store))) == {b"a", b"d"}


def test_a_change_of_the_same_size_within_one_tick_is_detected(
    project: Path, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a file system with a coarse clock."""
    monkeypatch.setattr("yurt.snapshot.seen.mark", lambda about: (0, 0, about.st_ino, about.st_size, about.st_mode))
    file = project / "a"
    for number in range(10):
        file.write_text(f"{number:04}")
        assert content(take(project, store))[b"a"][1] == f"{number:04}".encode()


def test_too_large(project: Path, store: Path) -> None:
    (project / "small").write_text("x")
    with (project / "weights.pt").open("wb") as file:
        file.truncate(50_000_001)
    with pytest.raises(UserError, match=r"'weights.pt' is 51 MB; the limit for a code file is 50 MB") as caught:
        take(project, store)
    assert "--exclude 'weights.pt'" in caught.value.hint
    assert set(content(take(project, store, exclude=["weights.pt"]))) == {b"small"}
    assert take(project, store, largest_file=1 << 30).files == 2
    with pytest.raises(UserError, match=r"the largest file is 'weights.pt'"):
        take(project, store, largest_file=1 << 30, largest_tree=10 << 20)


def test_concurrent_snapshots_and_after_a_kill(project: Path, store: Path) -> None:
    for number in range(50):
        (project / str(number)).write_text(str(number))
    with ThreadPoolExecutor(8) as pool:
        trees = {found.tree for found in pool.map(lambda _: take(project, store), range(16))}
    assert len(trees) == 1
    (store / "aside" / "half").mkdir(parents=True)
    (project / "0").write_text("changed")
    assert take(project, store).files == 50
    assert stat.S_IMODE(store.stat().st_mode) == 0o700


def test_relative_paths(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sh(project, "git init -q; mkdir -p sub/d; echo a > sub/d/a; echo b > sub/b; echo d/ > sub/.yurtignore")
    monkeypatch.chdir(project)
    assert set(content(take(Path("sub"), Path("../store.git")))) == {b"b", b".yurtignore"}
    assert (tmp_path / "store.git" / "HEAD").exists()


def test_empty_folder_and_no_folder(project: Path, store: Path) -> None:
    assert take(project, store).files == 0
    with pytest.raises(NotFoundError, match=r"folder '.*nope' not found"):
        take(project / "nope", store)


@settings(max_examples=40, deadline=None)
@given(
    files=st.dictionaries(
        st.binary(min_size=1, max_size=12).filter(lambda name: b"/" not in name and b"\0" not in name),
        st.binary(max_size=200),
        max_size=8,
    )
)
def test_any_name_and_any_content(tmp_path_factory: pytest.TempPathFactory, files: dict[bytes, bytes]) -> None:
    root = tmp_path_factory.mktemp("any")
    kept = {name: data for name, data in files.items() if name not in (b".", b"..") and name.lower() != b".git"}
    kept = {name: data for name, data in kept.items() if name not in (b".gitignore", b".yurtignore")}
    kept = {name: data for name, data in kept.items() if not secrets.by_name([name]) and not secrets.by_content(data)}
    for name, data in kept.items():
        Path(os.fsdecode(os.path.join(os.fsencode(root), name))).write_bytes(data)
    found = content(take(root, tmp_path_factory.mktemp("store") / "s.git"))
    assert {name: data for name, (_mode, data) in found.items()} == kept


NAMES = st.lists(st.sampled_from(["a", "a.b", "a-b", "a0", "ab", "b"]), min_size=1, max_size=4).map("/".join)


@settings(max_examples=25, deadline=None)
@given(names=st.sets(NAMES, max_size=12), packed=st.booleans())
def test_trees_are_identical_to_gits(tmp_path_factory: pytest.TempPathFactory, names: set[str], packed: bool) -> None:
    """Written one by one or as a pack, git finds no errors, and the ids are those of git."""
    root, store = tmp_path_factory.mktemp("any"), tmp_path_factory.mktemp("store") / "s.git"
    for name in sorted(names):
        if not any(f"{name}/" == other[: len(name) + 1] for other in names):
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(name[-1])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(record, "MANY", 1 if packed else 1000)
        found = take(root, store)
    assert sh(root, "git init -q; git add -A; git write-tree").strip() == found.tree
    sh(store, f"git --git-dir=. fsck --full --strict --no-progress {found.tree}")


def test_unchanged_costs_one_git_and_no_reading(project: Path, store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sh(project, "git init -q; mkdir d; for n in $(seq 30); do echo $n > d/$n; done; git add -A")
    for path in project.rglob("*"):
        os.utime(path, (1, 1))
    first = take(project, store)
    # ctime cannot be set: wait until it is old enough to be trusted.
    monkeypatch.setattr("yurt.snapshot.seen.TICK", -10_000_000_000)
    (project / "d" / "1").write_text("changed")
    second = take(project, store)
    started = 0

    def counted(arguments: Sequence[str], *, folder: Path, own: Path | None = None) -> git.Running:
        nonlocal started
        started += 1
        return git.Running(arguments, folder, own)

    monkeypatch.setattr(git, "start", counted)
    monkeypatch.setattr(record, "_content", lambda path: pytest.fail(f"{path!r} was read"))
    before = (store / "seen").stat().st_mtime_ns
    assert take(project, store) == second != first
    assert started == 1 and (store / "seen").stat().st_mtime_ns == before
    (project / "d" / "2").unlink()
    assert take(project, store).files == second.files - 1, "a removed file is a change too"
    assert b"d/2" not in content(take(project, store))


def test_a_project_of_too_many_files(project: Path, store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("yurt.snapshot.collect.MOST", 20)
    (project / "data").mkdir()
    for number in range(25):
        (project / "data" / f"{number}.txt").touch()
    (project / "train.py").touch()
    with pytest.raises(UserError, match="more than 20 files; 'data' has 25 of them"):
        take(project, store)
    assert take(project, store, exclude=["data"]).files == 1
    (project / ".yurtignore").write_text("data/\n")
    assert take(project, store).files == 2
    (project / ".yurtignore").unlink()
    (project / ".gitignore").write_text("data/\n")
    assert take(project, store).files == 2


def test_a_file_that_was_just_edited_or_touched_has_the_same_tree(tmp_path: Path) -> None:
    """Its content decides; folders are not written again, and once it has settled, it is not read any more."""
    root, store = tmp_path / "project", tmp_path / "store"
    (root / "deep").mkdir(parents=True)
    (root / "deep" / "a.py").write_text("one\n")
    (root / "b.py").write_text("two\n")
    first = take(root, store)
    listing = store / "seen"
    before = listing.read_bytes()
    assert take(root, store).tree == first.tree and listing.read_bytes() == before, "not settled: nothing to save"
    for each in (root / "deep" / "a.py", root / "b.py"):
        os.utime(each, ns=(10**18, 10**18))
    assert take(root, store).tree == first.tree
    (root / "deep" / "a.py").write_text("ONE\n")  # the same size
    assert take(root, store).tree != first.tree
    (root / "deep" / "a.py").write_text("one\n")
    assert take(root, store).tree == first.tree
    (root / "b.py").chmod(0o755)
    changed = take(root, store)
    assert changed.tree != first.tree
    (root / "b.py").unlink()
    (root / "b.py").symlink_to("two\n")  # the content of a link is its target
    assert take(root, store).tree not in (first.tree, changed.tree)
