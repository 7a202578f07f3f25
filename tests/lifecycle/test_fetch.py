"""Results are downloaded completely, from quiet and noisy sites, with and without rsync, and after lost connections."""

from __future__ import annotations

import hashlib
import io
import itertools
import os
import random
import re
import shutil
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.calls import YURT
from tests.lab.conftest import Ssh
from tests.laptop import Laptop
from tests.user import User
from yurt.errors import HereIsFullError
from yurt.lab import Lab
from yurt.lab.relay import Rules
from yurt.model.files import Pick
from yurt.store import Store
from yurt.testing.runs import PATIENT
from yurt.testing.waiting import eventually
from yurt.transport import tar
from yurt.transport.rsync_process import PARTIAL
from yurt.transport.tar import chosen

WRITE = """\
import os, random
out = os.environb[b"YURT_OUTPUTS"]
os.makedirs(out + b"/a b/c")
big = random.Random(1).randbytes(8_000_000)
names = [b"-dash", b"new\\nline", b"\\xff\\xfe", b"back\\\\slash", b"st*r[x]", b'"q"', b".hidden", b"small.json"]
for name in [b"a b/c/it's big", *names]:
    with open(out + b"/" + name, "wb") as file:
        file.write(big if name.endswith(b"big") else name)
os.symlink("/nowhere", out + b"/dangling")
os.symlink("a b", out + b"/folder link")
os.link(out + b"/-dash", out + b"/hard")
os.mkfifo(out + b"/fifo")
with open(os.environb[b"YURT_CHECKPOINTS"] + b"/last", "w") as file:
    file.write("7")
with open("own.txt", "w") as file:
    file.write("own")
"""

TOOLS = (
    "sh ssh tar git head tail cat id uname setsid cut wc find awk kill ls mkdir mv rm ln date sleep touch xargs python3"
)


def tree(folder: Path) -> dict[bytes, str]:
    """The contents of a folder: the checksum of each file and the target of each link."""
    found = {}
    for path in folder.rglob("*"):
        if path.is_symlink():
            found[bytes(path.relative_to(folder))] = f"-> {os.readlink(path)}"
        elif path.is_file():
            found[bytes(path.relative_to(folder))] = hashlib.sha1(path.read_bytes()).hexdigest()
    return found


def expected() -> dict[bytes, str]:
    names = [b"-dash", b"new\nline", b"\xff\xfe", b"back\\slash", b"st*r[x]", b'"q"', b".hidden", b"small.json"]
    found = {name: hashlib.sha1(name).hexdigest() for name in names}
    found[b"a b/c/it's big"] = hashlib.sha1(random.Random(1).randbytes(8_000_000)).hexdigest()
    found[b"own.txt"] = hashlib.sha1(b"own").hexdigest()
    return {**found, b"hard": found[b"-dash"], b"dangling": "-> /nowhere", b"folder link": "-> a b"}


def without_rsync(folder: Path) -> str:
    """A PATH without rsync."""
    folder.mkdir()
    for name in TOOLS.split():
        found = shutil.which(name)
        if found:
            (folder / name).symlink_to(found)
    return str(folder)


@pytest.mark.parametrize(
    ("glob", "path", "matches"),
    [
        ("*.json", "a/b/c.json", True),
        ("*.json", "c.jsonl", False),
        ("b/*", "a/b/c", True),
        ("b/*", "a/b/c/d", False),
        ("b/**", "a/b/c/d", True),
        ("/b/**", "a/b/c", False),
        ("/a/*/c", "a/b/c", True),
        ("[!a]?", "bc", True),
        ("[!a]?", "ac", False),
        ("st\\*r", "st*r", True),
        ("st\\*r", "stxr", False),
        ("x", "ax", False),
    ],
)
def test_patterns_match_the_same_files_with_tar_and_rsync(glob: str, path: str, matches: bool, tmp_path: Path) -> None:
    file = tmp_path / "from" / path
    file.parent.mkdir(parents=True)
    file.touch()
    words = ["rsync", "-r", "-m", "--include=*/", f"--include={glob}", "--exclude=*"]
    subprocess.run([*words, f"{tmp_path}/from/", f"{tmp_path}/to/"], check=True)
    assert (tmp_path / "to" / path).exists() == matches
    assert chosen(path, Pick([glob])) == matches


class Here(User):
    """A user with local runs."""

    def __init__(self, home: Path) -> None:
        super().__init__(home)
        (self.project / "write.py").write_text(WRITE)
        self.data = home / "data"

    def run(self, *words: str) -> str:
        """Run a command and return the id of the completed run."""
        done = self.quick("run", "--wait", "--json", *words)
        assert done.code == 0, done
        run: str = done.json["data"]["run"]["id"]
        return run

    def patient(self) -> str:
        """Start a run that finishes when its folder contains a file `go`, and return its id."""
        run: dict[str, str] = self.quick("run", "--json", "sh", "-c", PATIENT).json["data"]["run"]
        eventually((Path(run["folder"]) / "gen.1").exists)
        return run["id"]


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Here]:
    with Here(tmp_path) as made:
        yield made


@pytest.mark.parametrize("way", ["rsync", "tar"])
def test_every_file_is_fetched_once(here: Here, tmp_path: Path, way: str) -> None:
    run = here.run("write.py")
    path = {"PATH": without_rsync(tmp_path / "bin")} if way == "tar" else {}
    first = here("fetch", run, "--json", **path).json["data"][0]
    assert (first["method"], first["files"], first["complete"]) == (way, 13, True)
    assert tree(here.project / "results" / run) == expected()
    again = here("fetch", run, "--json", **path).json["data"][0]
    assert (again["files"], again["size"], again["complete"]) == (0, 0, True)
    assert "is up to date" in here("fetch", run, **path).out


@pytest.mark.parametrize("way", ["rsync", "tar"])
def test_all_is_the_run_folder_without_links_into_the_code(here: Here, tmp_path: Path, way: str) -> None:
    for name in ("odd*name", "plain", "b\\s", "b\\s*"):
        (here.project / name).write_text("")
    run = here.run("write.py")
    path = {"PATH": without_rsync(tmp_path / "bin")} if way == "tar" else {}
    assert here("fetch", run, "--all", **path).code == 0
    target = here.project / "results" / f"{run}.all"
    assert {**tree(target / "outputs"), **tree(target / "work")} == expected()
    assert set(tree(target / "work")) == {b"own.txt"}
    assert {"run.json", "job.sh", "exit.json", "out.log", "checkpoints"} <= {each.name for each in target.iterdir()}


@pytest.mark.parametrize("way", ["rsync", "tar"])
def test_setuid_and_setgid_are_dropped(here: Here, tmp_path: Path, way: str) -> None:
    script = (
        "mkdir $YURT_OUTPUTS/d; for f in tool d/tool; do echo > $YURT_OUTPUTS/$f; chmod 6755 $YURT_OUTPUTS/$f; done"
    )
    run = here.run("sh", "-c", f"{script}; chmod 2755 $YURT_OUTPUTS/d")
    path = {"PATH": without_rsync(tmp_path / "bin")} if way == "tar" else {}
    assert here("fetch", run, **path).code == 0
    target = here.project / "results" / run
    modes = {name: (target / name).stat().st_mode & 0o7777 for name in ("tool", "d/tool", "d")}
    assert modes == {"tool": 0o755, "d/tool": 0o755, "d": 0o755}


def test_a_hostile_archive_reads_and_writes_nothing_outside(tmp_path: Path) -> None:
    """A site that sends its own tar stream cannot copy a local file into the results, nor write beside them."""
    mine, target = tmp_path / "mine", tmp_path / "results"
    mine.mkdir()
    target.mkdir()
    (mine / "key").write_text("private")
    (target / "own").write_text("private")
    requested = {"file", "copy", "link", "link/key", "device", "above", "through"}

    def extract(*members: tuple[str, bytes, str]) -> None:
        content = io.BytesIO()
        with tarfile.open(fileobj=content, mode="w") as archive:
            for name, kind, text in members:
                member = tarfile.TarInfo(name)
                member.type = kind
                if kind == tarfile.REGTYPE:
                    member.size = len(text)
                else:
                    member.linkname = text
                archive.addfile(member, io.BytesIO(text.encode()))
        stream: Any = [content.getvalue()]
        list(tar._extract(stream, target, target / ".partial", requested))

    link = ("link", tarfile.SYMTYPE, str(mine))
    extract(
        ("file", tarfile.REGTYPE, "result"),
        ("copy", tarfile.LNKTYPE, "./file"),
        link,
        ("link/key", tarfile.REGTYPE, "changed"),
        ("device", tarfile.CHRTYPE, ""),
    )
    assert (target / "copy").read_text() == "result" and (target / "link" / "key").read_text() == "changed"
    (target / ".partial" / "file").unlink(missing_ok=True)
    shutil.rmtree(target / ".partial")
    (target / ".partial").symlink_to(mine)
    extract(("file", tarfile.REGTYPE, "result"))
    for other in ("../mine/key", f"{mine}/key", "link/other", ".partial"):
        with pytest.raises(tar.NotRequested):
            extract((other, tarfile.REGTYPE, "changed"))
    for source in (f"{mine}/key", "../mine/key", "link/key", "own"):
        with pytest.raises(tar.NotRequested):
            extract(("above", tarfile.LNKTYPE, source))
    assert {each.name for each in mine.iterdir()} == {"key"} and (mine / "key").read_text() == "private"
    assert not (target / "device").exists() and not (target / "above").exists()


def sparse(size: int) -> bytes:
    """Return an archive of a few bytes with a file that consists of one hole."""
    member = tarfile.TarInfo("file")
    member.size = 512
    about = {"major": "1", "minor": "0", "realsize": f"{size}", "name": "file"}
    member.pax_headers = {f"GNU.sparse.{key}": value for key, value in about.items()}
    return member.tobuf(tarfile.PAX_FORMAT) + b"0\n".ljust(512, b"\0") + bytes(1024)


def negative() -> bytes:
    head = bytearray(tarfile.TarInfo("file").tobuf())
    head[124:136] = b"\xff" * 12
    head[148:156] = b"        "
    head[148:156] = b"%06o\0 " % sum(head)
    return bytes(head) + bytes(1024)


ONE = tarfile.TarInfo("file").tobuf()


@pytest.mark.parametrize(
    ("content", "error", "said"),
    [
        pytest.param([ONE * 2 + bytes(1024)], tar.NotRequested, "file", id="twice"),
        pytest.param([sparse(1 << 50)], HereIsFullError, "the files have ", id="one hole"),
        pytest.param([negative()], tarfile.ReadError, "negative size", id="negative"),
        pytest.param(itertools.chain([ONE], itertools.repeat(bytes(1 << 16))), tarfile.ReadError, "end", id="endless"),
    ],
)
def test_an_archive_that_would_fill_the_disk_or_never_end(
    tmp_path: Path, content: Any, error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        list(tar._extract(content, tmp_path, tmp_path / ".partial", {"file", "other"}))
    assert sum(each.stat().st_blocks for each in tmp_path.rglob("*") if each.is_file()) == 0


MODES = """\
import os
os.umask(0)
os.chdir(os.environ["YURT_OUTPUTS"])
os.makedirs("old"); os.makedirs("new", 0o2700)
for name, mode in {"old/same": 0o777, "old/run.sh": 0o600, "tool": 0o4700, "open": 0o777, "closed": 0o600,
                   "new/x": 0o500, "new/w": 0o666, "new/r": 0o444}.items():
    with open(name, "w") as file:
        file.write("of the run")
    os.chmod(name, mode)
os.chmod("old", 0o700)
os.chmod(".", 0o777)
"""


@pytest.mark.parametrize("way", ["rsync", "tar"])
def test_modes_are_those_of_the_user(here: Here, tmp_path: Path, way: str) -> None:
    """What was there keeps its mode; what comes gets the mode that the umask gives to new files and folders."""
    (here.project / "modes.py").write_text(MODES)
    run = here.run("modes.py")
    path = {"PATH": without_rsync(tmp_path / "bin")} if way == "tar" else {}
    here.project.chmod(0o755)
    (here.project / "old").mkdir(mode=0o750)
    for name, mode in {"same": 0o640, "run.sh": 0o755}.items():
        (here.project / "old" / name).write_text("mine")
        (here.project / "old" / name).chmod(mode)
    for umask, (folder, program, file) in {0o027: (0o750, 0o750, 0o640), 0o002: (0o775, 0o775, 0o664)}.items():
        new = {"new": folder, "tool": program, "open": program, "closed": file}
        new |= {"new/x": program, "new/w": file, "new/r": file}
        before = os.umask(umask)
        try:
            for target in (here.project, tmp_path / f"{umask}"):
                done = here("fetch", run, "--to", str(target), "--json", **path)
                assert (done.code, done.json["data"][0]["method"]) == (0, way), done
        finally:
            os.umask(before)
        fresh = tmp_path / f"{umask}"
        modes = {name: (fresh / name).stat().st_mode & 0o7777 for name in (".", *new)}
        assert modes == {".": folder, **new}
        again = here("fetch", run, "--to", str(fresh), "--json", **path).json["data"][0]
        assert again["files"] == 0, "other modes are no changes"
        kept = {".": 0o755, "old": 0o750, "old/same": 0o640, "old/run.sh": 0o755}
        assert {name: (here.project / name).stat().st_mode & 0o7777 for name in kept} == kept
    assert (here.project / "old" / "same").read_text() == "of the run"


@pytest.mark.parametrize("way", ["rsync", "tar"])
def test_only_matching_files(here: Here, tmp_path: Path, way: str) -> None:
    run = here.run("write.py")
    path = {"PATH": without_rsync(tmp_path / "bin")} if way == "tar" else {}
    words = ["fetch", run, "--only", "*.json", "--only", "a b/", "--to", "some", "--json"]
    done = here(*words, **path).json["data"][0]
    assert (done["method"], done["files"], done["complete"]) == (way, 2, False)
    assert set(tree(here.project / "some")) == {b"small.json", b"a b/c/it's big"}
    none = here("fetch", run, "--only", "*.nothing", "--to", "other", **path)
    assert none.code == 3
    assert "'*.nothing'" in none.err
    assert not (here.project / "other").exists()


def test_tasks_without_a_match(here: Here) -> None:
    script = 'if [ "$2" = 3 ]; then echo 3 > $YURT_OUTPUTS/best; elif [ "$2" != 2 ]; then echo > other; fi'
    words = ["run", "--wait", "--json", "--grid", "n=1..5", "sh", "-c", script, "sh"]
    sweep = here.quick(*words).json["data"]["run"]["id"]
    single = here.run("true")
    done = here.quick("fetch", sweep, "--only", "best", "--json")
    assert (done.code, [each["id"] for each in done.json["data"]]) == (0, [f"{sweep}.2"])
    assert done.json["warnings"] == [f"no file in the results of tasks 0-1,3-4 of {sweep} matches 'best'"]
    several = here.quick("fetch", single, f"{sweep}.1", f"{sweep}.2", "--only", "best")
    assert several.code == 0
    assert f"no file in the results of run {single} and task 1 of {sweep} matches 'best'" in several.err
    none = here.quick("fetch", sweep, single, "--only", "worst", "--json")
    assert (none.code, none.json["error"]["code"]) == (3, "not-found")
    assert f"run {single} and tasks 0-4 of {sweep} matches 'worst'" in none.json["error"]["message"]
    assert none.json["error"]["hint"] == f"fetch all files with `yurt fetch {sweep}`"


def test_results_are_not_part_of_the_snapshot(here: Here) -> None:
    run = here.run("write.py")
    assert here.quick("fetch", run).code == 0
    planned = here.quick("run", "--dry-run", "--json", "true").json["data"]["run"]["code"]["files"]
    assert planned == 2, "train.py and write.py"
    (here.project / "results" / ".gitignore").write_text("mine\n")
    assert here.quick("fetch", run).code == 0
    assert (here.project / "results" / ".gitignore").read_text() == "mine\n", "yurt does not change the user's file"


def test_errors_of_fetch(here: Here) -> None:
    run = here.run("write.py")
    (here.project / "file").touch()
    for target in ("file", "file/below"):
        done = here.quick("fetch", run, "--to", target)
        assert (done.code, "is not a folder" in done.err) == (2, True)
    assert here.quick("fetch", run, "--to", "").code == 2
    empty = here.run("true")
    done = here.quick("fetch", empty, "--json")
    assert (done.code, done.json["data"][0]["target"], done.json["data"][0]["complete"]) == (0, "", True)
    assert here.quick("fetch", empty, "--only", "*").code == 3
    shutil.rmtree(next(here.data.glob(f"projects/*/runs/{run}")))
    purged = here.quick("fetch", run)
    assert (purged.code, "its folder on local was deleted" in purged.err) == (3, True)
    several = here.quick("fetch", run, empty, "--json")
    assert several.code == 3
    assert [each["id"] for each in several.json["data"]] == [empty]
    assert "its folder on local was deleted" in several.json["warnings"][0]
    assert not (here.project / "results").exists()


def test_several_runs_into_one_folder_each(here: Here) -> None:
    runs = [here.run("sh", "-c", f"echo {number} > $YURT_OUTPUTS/number") for number in range(3)]
    assert here.quick("fetch", *runs, "--to", "all").code == 0
    assert [(here.project / "all" / run / "number").read_text() for run in runs] == ["0\n", "1\n", "2\n"]


def test_results_of_a_running_run_are_incomplete(here: Here) -> None:
    script = f"echo 1 > $YURT_OUTPUTS/a; {PATIENT}; echo 2 > $YURT_OUTPUTS/b"
    run = here.quick("run", "--json", "sh", "-c", script).json["data"]["run"]["id"]
    (folder,) = here.data.glob(f"projects/*/runs/{run}")
    eventually((folder / "outputs" / "a").exists)
    half = here.quick("fetch", run, "--json").json["data"][0]
    assert (half["files"], half["complete"]) == (1, False)
    with Store(str(here.data / "yurt.db")) as store:
        (copy,) = store.copies(run)
    assert (copy.measures.outputs, copy.files) == ("", b""), "it does not count as a copy"
    (folder / "go").touch()
    assert here.quick("wait", run).code == 0
    rest = here.quick("fetch", run, "--json").json["data"][0]
    assert (rest["files"], rest["complete"]) == (1, True)
    assert here.quick("fetch", run, "--only", "a").code == 0
    with Store(str(here.data / "yurt.db")) as store:
        (copy,) = store.copies(run)
    assert copy.target == bytes(here.project / "results" / run)
    assert copy.measures.outputs.startswith("2:4:"), "a later partial fetch does not change the record"
    assert copy.measures.checkpoints == ""


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A folder on a disk of 1 MB."""
    if os.geteuid() != 0:
        pytest.skip("needs root, to mount a small disk")
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", str(disk)], check=True)
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


@pytest.mark.parametrize("way", ["rsync", "tar"])
def test_a_full_local_disk(
    here: Here, tmp_path: Path, small_disk: Path, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It becomes full during the transfer."""
    run = here.run("write.py")
    if way == "tar":
        monkeypatch.setattr("yurt.transport.rsync_process.usable", lambda: False)
    with monkeypatch.context() as patch:
        patch.setattr("yurt.transport.room.free", lambda _folder: 1 << 40)
        done = here.quick("fetch", run, "--to", str(small_disk / "there"))
    assert (done.code, "the disk of this machine is full" in done.err) == (5, True), done
    assert b"a b/c/it's big" not in tree(small_disk / "there")
    subprocess.run(["mount", "-o", "remount,size=20m", str(small_disk)], check=True)
    assert here.quick("fetch", run, "--to", str(small_disk / "there")).code == 0
    assert tree(small_disk / "there") == expected()


SPARSE = """
import os, pathlib
folder = pathlib.Path({folder})
(folder / "small.txt").write_text("small")
(folder / "sparse.bin").touch()
os.truncate(folder / "sparse.bin", 3 * 10**12)
"""


@pytest.mark.parametrize("way", ["rsync", "tar"])
@pytest.mark.parametrize("folder", ["os.environ['YURT_OUTPUTS']", "'.'"])
def test_more_than_the_disk_has_room_for(
    here: Here, small_disk: Path, way: str, folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sparse file of 3 TB takes no space on the site, but would fill every disk here."""
    if way == "tar":
        monkeypatch.setattr("yurt.transport.rsync_process.usable", lambda: False)
    (here.project / "write.py").write_text(SPARSE.format(folder=folder))
    run, there = here.run("write.py"), small_disk / "there"
    for words in ([], ["--only", "*.bin"], ["--all"]):
        done = here.quick("fetch", run, "--to", str(there), *words)
        assert done.code == 5 and "the files have 3.0 TB (sparse files in full), but the disk of" in done.err, done
        assert not list(there.rglob("*.bin")), "nothing was downloaded"
    assert here.quick("fetch", run, "--to", str(there), "--only", "*.txt").code == 0
    assert (there / "small.txt").read_text() == "small"


def test_a_partial_file_has_room(here: Here, small_disk: Path) -> None:
    """It is continued where it is, so only its rest needs space."""
    content = os.urandom(700_000)
    (here.project / "data").write_bytes(content)
    run = here.run("sh", "-c", "cp data $YURT_OUTPUTS/copy")
    there = small_disk / "there"
    (there / PARTIAL).mkdir(parents=True)
    (there / PARTIAL / "copy").write_bytes(content[:500_000])
    assert here.quick("fetch", run, "--to", str(there)).code == 0
    assert (there / "copy").read_bytes() == content


@pytest.fixture(scope="module")
def laptop(shared_laptop: Laptop) -> Laptop:
    (shared_laptop.project / "write.py").write_text(WRITE)
    return shared_laptop


@pytest.fixture(scope="module")
def runs(laptop: Laptop) -> dict[str, str]:
    made = {name: laptop.run(name, "write.py")["run"]["id"] for name in ("alpha", "beta")}
    assert laptop.quick("wait", *made.values(), "--timeout", "240").code == 0
    return made


@pytest.mark.lab
@pytest.mark.parametrize("way", ["rsync", "tar"])
def test_both_sites_in_one_command(laptop: Laptop, runs: dict[str, str], way: str, tmp_path: Path) -> None:
    path = {"PATH": without_rsync(tmp_path / "bin")} if way == "tar" else {}
    words = ["fetch", *runs.values(), "--to", str(tmp_path / "there"), "--json"]
    for files in (13, 0):
        done = laptop(*words, **path).json["data"]
        assert [(each["method"], each["files"], each["complete"]) for each in done] == [(way, files, True)] * 2
    for run in runs.values():
        assert tree(tmp_path / "there" / run) == expected()


@pytest.mark.lab
@pytest.mark.parametrize("cluster", ["alpha", "beta"])
def test_an_interrupted_transfer_continues(
    laptop: Laptop, runs: dict[str, str], lab: Lab, cluster: str, tmp_path: Path
) -> None:
    host = {"alpha": "alpha", "beta": "beta:login1"}[cluster]
    other = ["beta:login2"] if cluster == "beta" else []
    laptop.quick("login", "--close", cluster)
    for each in (host, *other):
        lab.faults.delay(each, Rules(cut_at=6_000_000, direction="down"))
    target = tmp_path / "there"
    try:
        cut = laptop.quick("fetch", runs[cluster], "--to", str(target))
        assert cut.code == 4
        assert cut.err.splitlines()[0].endswith("lost connection during the transfer; files fetched so far are kept")
        assert b"a b/c/it's big" not in tree(target), "a partial file does not have the final name"
        kept = [each for each in target.rglob("*big*") if each.parent.name == ".yurt-partial"]
        assert kept and kept[0].stat().st_size > 2_000_000
    finally:
        for each in (host, *other):
            lab.faults.heal(each)
    laptop.quick("login", "--close", cluster)
    for each in (host, *other):
        lab.faults.delay(each, Rules(cut_at=7_000_000, direction="down"))
    try:  # a transfer from scratch would be interrupted again; the rest of the file fits
        complete = laptop.quick("fetch", runs[cluster], "--to", str(target))
        assert complete.code == 0, complete
    finally:
        for each in (host, *other):
            lab.faults.heal(each)
    assert tree(target) == expected()


@pytest.mark.lab
@pytest.mark.parametrize("way", ["rsync", "tar"])
def test_progress_has_bytes_total_rate_and_time_left(
    laptop: Laptop, runs: dict[str, str], lab: Lab, way: str, tmp_path: Path
) -> None:
    path = {"PATH": without_rsync(tmp_path / "bin")} if way == "tar" else {}
    laptop.quick("login", "--close", "alpha")
    lab.faults.delay("alpha", Rules(rate=2_000_000))
    try:
        done = laptop("-v", "fetch", runs["alpha"], "--to", str(tmp_path / "there"), **path)
    finally:
        lab.faults.heal("alpha")
        laptop.quick("login", "--close", "alpha")
    assert done.code == 0
    found = re.findall(r"fetching \S+: [\d.]+ of ([\d.]+) MB, [\d.]+ [kM]B/s, \d+ s left", done.err)
    assert found and all(abs(float(each) / 8 - 1) < 0.1 for each in found), done.err


@pytest.mark.lab
def test_an_unreachable_site_and_a_run_that_was_never_submitted(
    laptop: Laptop, lab: Lab, runs: dict[str, str], tmp_path: Path
) -> None:
    laptop.quick("login", "--close", "alpha")
    lab.faults.cut("alpha")
    try:
        saved = laptop.run("alpha", "true")["run"]["id"]
        unsent = laptop.quick("fetch", saved)
        assert (unsent.code, "it is saved and not yet submitted" in unsent.err) == (3, True)
        away = laptop.quick("fetch", runs["alpha"], runs["beta"], "--to", str(tmp_path / "there"), "--json")
        assert away.code == 4
        assert [each["id"] for each in away.json["data"]] == [runs["beta"]], (
            "an unreachable site does not block the others"
        )
        assert "alpha" in away.json["warnings"][0]
        laptop.quick("cancel", saved)
    finally:
        lab.faults.heal("alpha")
    never = laptop.quick("fetch", saved)
    assert (never.code, "it was never submitted" in never.err) == (3, True)


BRING = """\
import sys
from pathlib import Path
from yurt.config import contexts
from yurt.errors import UnreachableError
from yurt.backends.registry import host_of
from yurt.transport import rsync
from yurt.model.files import Pick
source, target, masters = sys.argv[1:]
try:
    rsync.bring(host_of(contexts.named("alpha")), source, Path(target), Pick(), lambda *_now: None, silence=5)
except UnreachableError as error:
    print(error, [file for file in Path(masters).iterdir() if file.is_socket()] != [])
"""
"""Prints why the transfer failed, and whether the ssh connection still exists."""


@pytest.mark.lab
def test_a_transfer_over_a_hanging_link_times_out(
    laptop: Laptop, runs: dict[str, str], lab: Lab, tmp_path: Path
) -> None:
    """It times out before ssh notices, which takes twenty seconds, and leaves no process behind."""
    folder = laptop.quick("show", runs["alpha"], "--json").json["data"]["run"]["folder"] + "/outputs"
    target = tmp_path / "there"
    target.mkdir()
    for each in ("alpha", "beta"):  # then the hanging connection is the only one
        laptop.quick("login", "--close", each)
    lab.faults.delay("alpha", Rules(cut_at=1_500_000, direction="down", ending="stall"))
    try:
        done = subprocess.run(
            [sys.executable, "-c", BRING, folder, str(target), str(laptop.runtime)],
            env={**os.environ, **laptop.environment},
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
    finally:
        lab.faults.heal("alpha")
        laptop.quick("login", "--close", "alpha")
    assert done.stdout == "alpha: lost connection during the transfer; files fetched so far are kept True\n", done
    left = subprocess.run(["pgrep", "-f", str(target)], capture_output=True, check=False)
    assert left.stdout == b"", "a process of the transfer is left"


@pytest.mark.lab
def test_a_transfer_killed_at_any_moment_continues(laptop: Laptop, runs: dict[str, str], tmp_path: Path) -> None:
    target = tmp_path / "there"
    environment = {**os.environ, **laptop.environment}
    for number in range(6):
        process = subprocess.Popen([YURT, "fetch", runs["beta"], "--to", str(target)], env=environment)
        time.sleep(0.15 + 0.06 * number)
        process.kill()
        process.wait()
        assert all(text == expected()[name] for name, text in tree(target).items() if name in expected())
    assert laptop.quick("fetch", runs["beta"], "--to", str(target)).code == 0
    assert expected().items() <= tree(target).items()


@pytest.mark.lab
def test_a_site_without_rsync(laptop: Laptop, runs: dict[str, str], lab: Lab, tmp_path: Path) -> None:
    """A site whose rsync does not work counts as one without: tar is used. Without other tools, it is an error."""
    ssh = Ssh(lab)
    ssh("alpha", "mkdir -p ~/broken && printf '#!/bin/sh\\nexit 127\\n' > ~/broken/rsync && chmod +x ~/broken/rsync")
    ssh("alpha", "cp ~/.bashrc ~/.bashrc.kept; sed -i '1i PATH=$HOME/broken:$PATH' ~/.bashrc")
    try:
        done = laptop.quick("fetch", runs["alpha"], "--to", str(tmp_path / "there"), "--json")
        assert (done.code, done.json["data"][0]["method"]) == (0, "tar")
        for tool, before in (("cat", "rsync"), ("awk", "cat")):
            ssh("alpha", f"cd ~/broken && mv {before} {tool}")
            done = laptop.quick("fetch", runs["alpha"], "--to", str(tmp_path / tool))
            assert (done.code, (tmp_path / tool).exists()) == (5, False), done
            assert done.err.startswith("yurt: alpha: cannot read the run folders: "), done
    finally:
        ssh("alpha", "mv ~/.bashrc.kept ~/.bashrc; rm -r ~/broken")
    assert tree(tmp_path / "there") == expected()


@pytest.mark.parametrize("way", ["rsync", "tar"])
def test_files_of_the_project_are_kept(here: Here, tmp_path: Path, way: str) -> None:
    """With --to, a result may have the name of a file of the project."""
    (here.project / "notes.txt").write_text("committed\n")
    run = here("--json", "run", "--wait", "sh", "-c", "echo of the run > notes.txt; echo 1 > new.txt").json
    run = run["data"]["run"]["id"]
    (here.project / "notes.txt").write_text("my edit\n")
    path = {"PATH": without_rsync(tmp_path / "bin")} if way == "tar" else {}
    done = here("fetch", run, "--to", ".", **path)
    assert f"1 file of your project was replaced by results of run {run}; the former content has a `~`" in done.err
    assert (here.project / "notes.txt").read_text() == "of the run\n"
    assert (here.project / "notes.txt~").read_text() == "my edit\n"
    again = here("fetch", run, "--to", ".", "--json", **path).json
    assert again["warnings"] == [] and again["data"][0]["files"] == 0
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "notes.txt").write_text("earlier\n")
    done = here("fetch", run, "--to", str(elsewhere), "--json", **path)
    assert done.json["warnings"] == [] and not (elsewhere / "notes.txt~").exists()


@pytest.mark.parametrize("way", ["rsync", "tar"])
def test_git_finds_no_commands_of_a_site(here: Here, tmp_path: Path, way: str) -> None:
    script = (
        "cd $YURT_OUTPUTS; for each in .git .Git sub/.git; do mkdir -p $each/hooks; "
        "echo > $each/config; echo > $each/hooks/post-checkout; done; echo > sub/file; echo > .gitignore"
    )
    run = here.run("sh", "-c", script)
    path = {"PATH": without_rsync(tmp_path / "bin")} if way == "tar" else {}
    repository = tmp_path / "repository"
    repository.mkdir()
    subprocess.run(["git", "init", "-q", str(repository)], check=True)
    for target in (here.project, repository):
        before = tree(target)
        done = here("fetch", run, "--to", str(target), "--json", **path)
        assert (done.code, done.json["data"][0]["method"], done.json["data"][0]["files"]) == (0, way, 2), done
        assert set(tree(target)) - set(before) == {b".gitignore", b"sub/file"}
        assert not done.json["data"][0]["complete"], "prune must not count it as a copy"
    whole = here("fetch", run, "--to", str(tmp_path / "new"), "--json", **path).json["data"][0]
    assert (whole["files"], whole["complete"]) == (8, True)


def test_a_results_folder_of_the_project(here: Here) -> None:
    """It gets no .gitignore. Fetched results are not part of the next snapshot, other files are."""
    (here.project / "results").mkdir()
    (here.project / "results" / "paper.csv").write_text("1\n")
    run = here("--json", "run", "--wait", "sh", "-c", "echo 1 > new.txt").json["data"]["run"]["id"]
    assert here("fetch", run).code == 0 and here("fetch", run, "--all").code == 0
    assert not (here.project / "results" / ".gitignore").exists()
    (here.project / "results" / "mine.csv").write_text("2\n")
    assert here("run", "--wait", "sh", "-c", "find results -type f -o -type l | sort").code == 0
    assert here("logs", "-").out == "results/mine.csv\nresults/paper.csv\n"
    assert here("run", "--wait", "--include", f"results/{run}/new.txt", "cat", f"results/{run}/new.txt").code == 0


@pytest.mark.lab
def test_the_outputs_are_fetched_although_a_file_cannot_be_read(laptop: Laptop) -> None:
    script = "echo 1 > secret; chmod 000 secret; echo 2 > $YURT_OUTPUTS/model"
    run = laptop.run("alpha", "sh", "-c", script)["run"]["id"]
    assert laptop.ended(run)["state"] == "completed"
    done = laptop.quick("fetch", run)
    assert done.code == 5 and "Permission denied" in done.err, done
    assert (laptop.project / "results" / run / "model").read_text() == "2\n"
