"""`yurt data` on this machine: copies, archives, listings, removals, and what is refused. Needs no cluster."""

from __future__ import annotations

import os
import socket
import subprocess
import tarfile
from pathlib import Path

import pytest

from tests.lifecycle.test_fetch import without_rsync
from tests.user import User

NAMES = [b"-dash", b"new\nline", b"\xff\xfe", b"back\\slash", b"st*r[x]", b'"q"', b"it's", b".hidden", b"a b"]


def fill(folder: Path) -> Path:
    """Make a folder with odd names, links, modes and an empty folder."""
    (folder / "sub dir" / "deep").mkdir(parents=True)
    (folder / "empty").mkdir()
    for each in (folder, folder / "sub dir" / "deep"):
        for name in NAMES:
            (each / os.fsdecode(name)).write_bytes(name * 100)
    (folder / "script").write_text("#!/bin/sh\n")
    (folder / "script").chmod(0o755)
    (folder / "dangling").symlink_to("/nowhere")
    (folder / "link").symlink_to("sub dir")
    os.utime(folder / "script", (1_000_000_000, 1_000_000_000))
    return folder


FILES = 2 * len(NAMES) + 3


def facts(folder: Path) -> dict[str, tuple[object, ...]]:
    """Return of each entry its mode, time and content."""
    found: dict[str, tuple[object, ...]] = {}
    for each in folder.rglob("*"):
        if each.name == ".yurt-partial":
            continue
        name, about = str(each.relative_to(folder)), each.lstat()
        if each.is_symlink():
            found[name] = ("link", os.readlink(each))
        elif each.is_dir():
            found[name] = ("folder", about.st_mode)
        else:
            found[name] = (about.st_mode, int(about.st_mtime), each.read_bytes())
    return found


@pytest.fixture
def here(user: User, tmp_path: Path) -> User:
    """A user whose context `here` has the tier `data`."""
    contexts = user.home / "config" / "contexts.yaml"
    contexts.parent.mkdir(exist_ok=True)
    contexts.write_text(f"contexts:\n  here: {{type: local, tiers: {{data: {tmp_path / 'store'}}}}}\n")
    (tmp_path / "store").mkdir()
    assert user.quick("context", "use", "here").code == 0
    return user


@pytest.mark.parametrize("way", ["rsync", "tar"])
def test_a_folder_there_and_back(here: User, tmp_path: Path, way: str) -> None:
    path = {"PATH": without_rsync(tmp_path / "bin")} if way == "tar" else {}
    source = fill(here.project / "cifar")
    for sent, unchanged in ((FILES, 0), (0, FILES)):
        done = here("data", "put", "cifar", "data:sets/c", "--json", **path)
        assert done.code == 0, done
        moved = done.json["data"]["done"]
        assert (moved["files"], moved["unchanged"], moved["way"]) == (sent, unchanged, way)
        assert any("no usable rsync" in each for each in done.json["warnings"]) == (way == "tar")
    assert facts(tmp_path / "store" / "sets" / "c") == facts(source)
    (source / "script").write_text("#!/bin/sh\necho changed\n")
    assert here("data", "put", "cifar", "data:sets/c", "--json", **path).json["data"]["done"]["files"] == 1
    back = here("data", "get", "data:sets/c", "back", "--json", **path)
    assert back.code == 0 and back.json["data"]["done"]["files"] == FILES, back
    found = facts(here.project / "back")
    assert found == {name: each for name, each in facts(source).items() if way == "rsync" or name != "empty"}
    again = here("data", "get", "data:sets/c", "back", **path)
    assert "21 files unchanged" in again.out, again


@pytest.mark.parametrize("way", ["rsync", "tar"])
def test_files_and_names(here: User, tmp_path: Path, way: str) -> None:
    path = {"PATH": without_rsync(tmp_path / "bin")} if way == "tar" else {}
    for name in ("a.csv", "b.csv"):
        (here.project / name).write_text(name)
    store = tmp_path / "store"
    assert here("data", "put", "a.csv", "b.csv", "data:tables/", **path).code == 0
    assert here("data", "put", "a.csv", "data:tables", **path).code == 5, "a folder where a file is copied to"
    assert here("data", "put", "a.csv", "data:new/name.csv", **path).code == 0
    assert here("data", "put", "a.csv", "data:into/", **path).code == 0
    found = sorted(str(each.relative_to(store)) for each in store.rglob("*.csv"))
    assert found == ["into/a.csv", "new/name.csv", "tables/a.csv", "tables/b.csv"]
    done = here("data", "get", "data:new/name.csv", **path)
    assert done.out == "downloaded 1 file, 5 B; name.csv\n" and (here.project / "name.csv").read_text() == "a.csv"
    assert here("data", "get", "data:new/name.csv", **path).out == "1 file unchanged; name.csv\n"
    (here.project / "folder").mkdir()
    assert here("data", "get", "data:new/name.csv", "folder", **path).code == 5, "the slash is missing"
    assert here("data", "get", "data:new/name.csv", "folder/", **path).code == 0
    assert (here.project / "folder" / "name.csv").exists()


def test_checksum_and_delete(here: User, tmp_path: Path) -> None:
    source = here.project / "s"
    source.mkdir()
    (source / "a").write_text("one")
    (source / "b").write_text("b")
    assert here.quick("data", "put", "s", "data:s").code == 0
    before = (source / "a").stat().st_mtime_ns
    (source / "a").write_text("two")
    os.utime(source / "a", ns=(before, before))
    (source / "b").unlink()
    assert here.quick("data", "put", "s", "data:s").out.startswith("1 file unchanged")
    assert here.quick("data", "put", "--checksum", "s", "data:s").out.startswith("uploaded 1 file, 3 B; here:")
    assert (tmp_path / "store" / "s" / "a").read_text() == "two" and (tmp_path / "store" / "s" / "b").exists()
    assert "1 deleted" in here.quick("data", "put", "--delete", "-y", "s", "data:s").out
    assert not (tmp_path / "store" / "s" / "b").exists()


def test_special_files_are_named(here: User, tmp_path: Path) -> None:
    source = here.project / "s"
    source.mkdir()
    (source / "a").write_text("one")
    os.mkfifo(source / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        os.chdir(source)
        server.bind("sock")
    done = here.quick("data", "put", "s", "data:s")
    assert done.code == 0 and "special files were not copied: pipe, sock" in done.err, done


def test_an_archive_does_not_bring_its_modes(here: User, tmp_path: Path) -> None:
    wide = here.project / "wide"
    (wide / "d").mkdir(parents=True)
    for name, mode in {"d/tool": 0o6777, "d/open": 0o666, "d/closed": 0o400, "d": 0o500, ".": 0o777}.items():
        if name not in (".", "d"):
            (wide / name).write_text(name)
        (wide / name).chmod(mode)
    subprocess.run(["tar", "-cf", str(tmp_path / "store" / "wide.tar"), "-C", str(wide), "."], check=True)
    (wide / "d").chmod(0o700)
    assert here.quick("data", "get", "--unpack", "data:wide.tar", "unpacked").code == 0
    named = ("d/tool", "d/open", "d/closed", "d", ".")
    modes = {name: (here.project / "unpacked" / name).stat().st_mode & 0o7777 for name in named}
    assert modes == {"d/tool": 0o755, "d/open": 0o644, "d/closed": 0o644, "d": 0o755, ".": 0o755}


def test_archives(here: User, tmp_path: Path) -> None:
    source = fill(here.project / "images")
    store = tmp_path / "store"
    first = here.quick("data", "put", "--pack", "images", "data:images.tar")
    assert first.out.startswith(f"uploaded {FILES} files"), first
    archive = (store / "images.tar").read_bytes()
    names = subprocess.run(["tar", "-tf", str(store / "images.tar")], capture_output=True, check=True).stdout
    assert b"script" in names
    assert here.quick("data", "put", "--pack", "images", "data:images.tar").out.startswith(f"{FILES} files unchanged")
    (store / "images.tar").unlink()
    assert here.quick("data", "put", "--pack", "images", "data:images.tar").code == 0
    assert (store / "images.tar").read_bytes() == archive, "the same files give the same archive"
    done = here.quick("data", "get", "--unpack", "data:images.tar", "out/")
    assert done.code == 0 and facts(here.project / "out" / "images") == facts(source), done
    assert here.quick("data", "get", "--unpack", "data:images.tar", "out/").code == 5, "the folder exists"
    assert here.quick("data", "get", "--unpack", "data:sets").code == 2
    assert here.quick("data", "rm", "-y", "data:images.tar").code == 0
    assert list(store.iterdir()) == [], "the digest is removed with the archive"


def test_an_archive_continues(here: User, tmp_path: Path) -> None:
    """What an earlier upload of the same files left is used, and not sent again."""
    source = here.project / "images"
    source.mkdir()
    (source / "large").write_bytes(os.urandom(5 << 20))
    store = tmp_path / "store"
    assert here.quick("data", "put", "--pack", "images", "data:images.tar").code == 0
    archive = (store / "images.tar").read_bytes()
    digest = (store / ".images.tar.yurt-pack").read_text()
    (store / "images.tar").unlink()
    part = bytearray(archive[: (3 << 20) + 5])
    part[100] = 7  # shows that these bytes are not sent again
    (store / f".images.tar.{digest}.part").write_bytes(part)
    assert here.quick("data", "put", "--pack", "images", "data:images.tar").code == 0
    part[(3 << 20) :] = archive[3 << 20 :]
    assert (store / "images.tar").read_bytes() == bytes(part)


def test_ls(here: User, tmp_path: Path) -> None:
    fill(tmp_path / "store" / "c")
    (tmp_path / "store" / "a\nb").write_text("12345")
    found = here.quick("data", "ls", "data:", "--json")
    assert found.code == 0 and found.json["kind"] == "data-listed"
    rows = {each["name"]: each for each in found.json["data"]["entries"]}
    assert (rows["a\nb"]["kind"], rows["a\nb"]["size"], rows["a\nb"]["files"]) == ("file", 5, 1)
    assert (rows["c"]["kind"], rows["c"]["files"]) == ("folder", FILES) and rows["c"]["modified"] > 1e9
    (one,) = here.quick("data", "ls", "data:c/it's", "--json").json["data"]["entries"]
    assert (one["name"], one["size"]) == ("it's", 400)
    missing = here.quick("data", "ls", "data:none")
    assert missing.code == 3 and "does not exist" in missing.err
    assert "name" in here.quick("data", "ls", "data:").out.splitlines()[0]
    assert here.quick("data", "ls").code == 0


def test_rm(here: User, tmp_path: Path) -> None:
    store = tmp_path / "store"
    fill(store / "c")
    (store / "outside").mkdir()
    (store / "outside" / "kept").touch()
    (store / "link").symlink_to("outside")
    assert here.quick("data", "rm", "data:c").code == 5 and (store / "c").exists(), "nobody can confirm"
    done = here.quick("data", "rm", "-y", "data:c", "data:link", "--json")
    assert [each["files"] for each in done.json["data"]["places"]] == [FILES, 1], done
    assert sorted(each.name for each in store.iterdir()) == ["outside"] and (store / "outside" / "kept").exists()
    assert here.quick("data", "rm", "-y", "data:c").code == 3
    (store / "way").symlink_to(here.home)
    for place in ("data:", f"here:{tmp_path}", f"here:{here.home / 'data'}", "data:way/data/x", "here:/"):
        refused = here.quick("data", "rm", "-y", place)
        assert refused.code in (2, 5), (place, refused)
    assert here.quick("data", "rm", "-y", "data:way").code == 0 and here.home.exists()


def test_rm_asks(here: User, tmp_path: Path) -> None:
    (tmp_path / "store" / "f").write_text("1")
    with here.spawn("data", "rm", "data:f", cwd=here.project) as terminal:
        terminal.expect("1 file, 1 B")
        terminal.expect("permanently remove this")
        terminal.sendline("y")
        terminal.expect("removed here:")
    assert not (tmp_path / "store" / "f").exists()


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("put", "none", "data:x"), 3, "'none' does not exist on this machine"),
        (("put", "train.py", "elsewhere"), 2, "'elsewhere' does not name a place on a context"),
        (("put", "train.py", "nowhere:x"), 3, "here has no storage tier 'nowhere'; it has: home, data"),
        (("put", "train.py", "other:data:x"), 3, "other"),
        (("put", "--pack", "train.py", "data:x.tar"), 2, "'train.py' is not a folder"),
        (("put", "train.py", "data:a", "data:b"), 2, "partly on this machine"),
        (("put", "--pack", ".", "data:x.zip"), 2, "store/x.tar`"),
        (("put", "/", "data:x"), 2, "the root of the file system"),
        (("put", "here:/", "data:x"), 2, "the root of the file system"),
        (("put", "train.py", "data:n/new\nline"), 2, "yurt: 'n/new\\nline' contains"),
        (("ls", "here:"), 2, "use `here:home:`"),
        (("get", "data:none"), 3, "does not exist"),
        (("get", "data:none", "here:data:q"), 2, "`yurt data put data:none here:data:q`"),
        (("get", "train.py"), 2, "does not name a place"),
        (("rm", "-y", "train.py"), 2, "does not name a place"),
    ],
)
def test_what_is_refused(here: User, words: tuple[str, ...], code: int, said: str) -> None:
    done = here.quick("data", *words)
    assert (done.code, said in done.err) == (code, True), done


def test_a_file_where_a_folder_is_copied_to(here: User, tmp_path: Path) -> None:
    fill(here.project / "c")
    (tmp_path / "store" / "f").touch()
    done = here.quick("data", "put", "c", "data:f")
    assert done.code == 5 and "is a file, not a folder" in done.err
    own = here.quick("data", "put", "c", f"here:{here.home / 'data'}/x")
    assert own.code == 5 and "yurt's own folder" in own.err


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to mount a small disk")
@pytest.mark.parametrize("way", ["rsync", "tar", "archive"])
def test_a_full_disk(here: User, tmp_path: Path, way: str) -> None:
    """It is said which disk is full; after some space is freed, the same command completes the copy."""
    path = {"PATH": without_rsync(tmp_path / "bin")} if way == "tar" else {}
    source = here.project / "s"
    source.mkdir()
    (source / "large").write_bytes(os.urandom(4 << 20))
    disk = tmp_path / "store" / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "none", str(disk)], check=True)
    words = ["--pack", "s", "data:disk/s.tar"] if way == "archive" else ["s", "data:disk/s"]
    try:
        done = here("data", "put", *words, **path)
        assert done.code == 5 and "disk is full" in done.err, done
        assert not (disk / "s" / "large").exists() and not (disk / "s.tar").exists()
        subprocess.run(["mount", "-o", "remount,size=30m", str(disk)], check=True)
        assert here("data", "put", *words, **path).code == 0
        subprocess.run(["mount", "-o", "remount,size=5m", str(disk)], check=False)
        if way == "archive":
            assert here("data", "get", "--unpack", "data:disk/s.tar", "back").code == 0
        else:
            assert here("data", "get", "data:disk/s", "back", **path).code == 0
        assert (here.project / "back" / "large").read_bytes() == (source / "large").read_bytes()
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_a_file_that_does_not_fit(here: User, monkeypatch: pytest.MonkeyPatch) -> None:
    (here.project / "large").write_bytes(b"x" * 3_000_000)
    assert here.quick("data", "put", "large", "data:large").code == 0
    with monkeypatch.context() as patch:
        patch.setattr("yurt.transport.room.free", lambda _folder: 1 << 20)
        done = here.quick("data", "get", "data:large", "back")
        assert done.code == 5 and "the files have 3.0 MB (sparse files in full)" in done.err, done
        assert not (here.project / "back").exists()
    assert here.quick("data", "get", "data:large", "back").code == 0


@pytest.mark.parametrize("way", ["rsync", "tar"])
def test_a_folder_that_does_not_fit(here: User, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    """It filled the disk: a sparse file may take no space on the site."""
    path = {"PATH": without_rsync(tmp_path / "bin")} if way == "tar" else {}
    (tmp_path / "store" / "d").mkdir()
    (tmp_path / "store" / "d" / "small").write_text("1")
    with (tmp_path / "store" / "d" / "large").open("wb") as sparse:
        sparse.truncate(3_000_000)
    with monkeypatch.context() as patch:
        patch.setattr("yurt.transport.room.free", lambda _folder: 1 << 20)
        done = here.quick("data", "get", "data:d", "back", **path)
        assert done.code == 5 and "the files have 3.0 MB (sparse files in full)" in done.err, done
        assert not list((here.project / "back").iterdir())
        (tmp_path / "store" / "d" / "large").write_bytes(b"y" * 4_000_000)
        (here.project / "back" / "large").write_bytes(b"x" * 4_000_000)
        os.utime(here.project / "back" / "large", (1, 1))
        if way == "rsync":
            assert here.quick("data", "get", "data:d", "back").code == 0, "it replaces a file of this size"
    assert here.quick("data", "get", "data:d", "back", **path).code == 0
    assert (here.project / "back" / "large").read_bytes() == b"y" * 4_000_000


@pytest.fixture
def fenced(here: User, tmp_path: Path) -> User:
    """A user with the empty folder `em`, and links to yurt's own folder in the tier."""
    (tmp_path.parent / f"{tmp_path.name}-outside").mkdir()
    (here.project / "em").symlink_to(tmp_path.parent / f"{tmp_path.name}-outside")
    assert here.quick("trust", "em").code == 0
    (tmp_path / "store" / "kept").write_text("1")
    (tmp_path / "store" / "ly").symlink_to(here.home / "data")
    (tmp_path / "store" / "up").symlink_to(here.home)
    (tmp_path / "store" / "self").symlink_to(".")
    return here


@pytest.mark.parametrize(
    "place", ["data:.", "home:.", "here:{home}", "here:{store}", "data:ly", "data:up", "data:self"]
)
def test_delete_never_empties_a_tier(fenced: User, tmp_path: Path, place: str) -> None:
    """Nor the home, yurt's own folder, or a folder that contains one, also through a link."""
    place = place.format(store=tmp_path / "store", home=fenced.home)
    before = facts(tmp_path / "store"), facts(fenced.home / "config")
    for words in ([], ["--yes"]):
        done = fenced.quick("data", "put", "--delete", *words, "em", place, HOME=str(tmp_path / "store" / "h"))
        assert done.code == 5 and "nothing was copied" in done.err, done
    assert (facts(tmp_path / "store"), facts(fenced.home / "config")) == before


def test_delete_asks(fenced: User, tmp_path: Path) -> None:
    target = tmp_path / "store" / "t"
    (target / "old").mkdir(parents=True)
    (target / "old" / "f").touch()
    (fenced.project / "em" / "new").touch()
    (fenced.project / "other").mkdir()
    for words in ([], ["--json"]):
        done = fenced.quick("data", "put", "--delete", "em", "data:t", *words)
        assert done.code == 5 and "2 files and folders" in done.err + done.out and "--yes" in done.err + done.out, done
    assert sorted(each.name for each in target.iterdir()) == ["old"], "nothing changed"
    with fenced.spawn("data", "put", "--delete", "em", "data:t", cwd=fenced.project) as terminal:
        terminal.expect("permanently delete 2 files and folders at here:")
        terminal.sendline("y")
        terminal.expect("2 deleted")
    assert sorted(each.name for each in target.iterdir()) == ["new"]
    assert fenced.quick("data", "put", "--delete", "em", "data:t").code == 0, "nothing to delete, no question"
    assert fenced.quick("data", "put", "--delete", "em", "data:fresh").code == 0
    assert fenced.quick("data", "put", "--delete", "--yes", "other", "train.py", "data:").code == 0, (
        "only in data:other"
    )
    assert (tmp_path / "store" / "kept").exists()


def test_get_with_delete(fenced: User, tmp_path: Path) -> None:
    (tmp_path / "store" / "s").mkdir()
    (tmp_path / "store" / "s" / "f").touch()
    link = fenced.project / "ly"
    link.symlink_to(fenced.home / "data")
    assert fenced.quick("trust", "--write", str(fenced.home / "data")).code == 0
    own = [str(fenced.home / "data"), str(fenced.home / "config"), "ly"]
    for target in (str(fenced.project), str(fenced.project.parent), "~", *own):
        done = fenced.quick("data", "get", "--delete", "--yes", "data:s", target, HOME=str(tmp_path / "h"))
        assert done.code == 5 and "nothing was copied" in done.err, (target, done)
    (fenced.project / "t").mkdir()
    (fenced.project / "t" / "old").touch()
    asked = fenced.quick("data", "get", "--delete", "data:s", "t")
    assert asked.code == 5 and "1 file or folder at t" in asked.err and (fenced.project / "t" / "old").exists(), asked
    assert not (fenced.project / "t" / "f").exists()
    assert "1 deleted" in fenced.quick("data", "get", "--delete", "-y", "data:s", "t").out
    assert fenced.quick("data", "get", "--delete", "data:s", "t").code == 0


def test_get_through_a_link_of_the_project(fenced: User, tmp_path: Path) -> None:
    (tmp_path / "store" / "f").touch()
    (tmp_path / "elsewhere").mkdir()
    (fenced.project / "models").symlink_to(tmp_path / "elsewhere")
    for target in ("models", "models/", "models/new/name"):
        refused = fenced.quick("data", "get", "data:f", target)
        assert refused.code == 2 and f"'models' is a link to {tmp_path}/elsewhere" in refused.err
    assert list((tmp_path / "elsewhere").iterdir()) == []


@pytest.mark.parametrize("way", ["rsync", "tar", "archive"])
def test_yurts_own_folder_through_a_link(fenced: User, tmp_path: Path, way: str) -> None:
    path = {"PATH": without_rsync(tmp_path / "bin")} if way == "tar" else {}
    words = ["--pack"] if way == "archive" else []
    for place in ("data:ly/zz.tar", "data:up/data/zz/y.tar", "data:self/ly/a/b.tar"):
        done = fenced("data", "put", *words, "em", place, **path)
        assert done.code == 5 and "yurt's own folder" in done.err, done
    assert list((fenced.home / "data").glob("**/*.tar")) == [] and not (fenced.home / "data" / "zz").exists()


def test_a_folder_into_itself(fenced: User, tmp_path: Path) -> None:
    fill(tmp_path / "store" / "sm")
    before = facts(tmp_path / "store")
    for words in (
        ("put", "data:sm", "data:sm/inside"),
        ("put", "data:sm", "data:self/sm/inside"),
        ("put", "data:sm", "data:sm"),
        ("put", "--delete", "data:sm/sub dir", "data:sm"),
        ("put", str(tmp_path / "store" / "sm"), "data:sm/inside"),
        ("put", "--pack", str(tmp_path / "store" / "sm"), "data:sm/inside.tar"),
        ("get", "data:sm", str(tmp_path / "store" / "sm" / "inside")),
    ):
        done = fenced.quick("data", *words)
        assert done.code == 2 and "one contains the other" in done.err, (words, done)
    assert facts(tmp_path / "store") == before


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to mount a disk")
def test_rm_names_what_remains(here: User, tmp_path: Path) -> None:
    folder = tmp_path / "store" / "c"
    (folder / "disk").mkdir(parents=True)
    (folder / "f").touch()
    subprocess.run(["mount", "-t", "tmpfs", "none", str(folder / "disk")], check=True)
    try:
        done = here.quick("data", "rm", "-y", "data:c")
    finally:
        subprocess.run(["umount", str(folder / "disk")], check=True)
    assert done.code == 5 and f"removed a part of {folder}; 0 files remain: {folder}/disk: Device or" in done.err, done


def test_invalid_names_in_json(here: User, tmp_path: Path) -> None:
    (tmp_path / "store" / os.fsdecode(b"\xff")).touch()
    (here.project / os.fsdecode(b"\xfe")).touch()
    found = here("data", "ls", "data:", "--json")
    assert [each["name"] for each in found.json["data"]["entries"]] == ["\\xff"], found
    assert here("data", "put", os.fsdecode(b"\xfe"), "data:x", "--json").json["data"]["sources"] == ["\\xfe"]


def test_reasons_name_the_path(here: User, tmp_path: Path) -> None:
    store = tmp_path / "store"
    (store / "f").touch()
    (store / "c" / "x").mkdir(parents=True)
    (store / "c" / "x" / "y").touch()
    (here.project / "c").mkdir()
    (here.project / "c" / "x").touch()
    for words, said in (
        (("put", "train.py", "data:f/"), f"'{store}/f' is a file, not a folder"),
        (("put", "c", "data:f/g/h"), f"'{store}/f' is a file, not a folder"),
        (("get", "data:f", "train.py/"), "'train.py' is a file, not a folder"),
        (("get", "data:c", "train.py/"), "'train.py' is a file, not a folder"),
        (("put", "c", "data:c"), "x"),
    ):
        done = here.quick("data", *words)
        assert done.code == 5 and said in done.err and "code 23" not in done.err, (words, done)


def test_what_is_said_of_a_copy(here: User, tmp_path: Path) -> None:
    (here.project / "em").mkdir()
    assert here.quick("data", "put", "em", "data:em").out.startswith("uploaded 0 files, 0 B; here:")
    assert here.quick("data", "put", "--pack", "em", "data:em.tar").out.startswith("uploaded 0 files")
    (tmp_path / "store" / "em" / "f").touch()
    assert here.quick("data", "put", "data:em", "data:em2").out.startswith("copied 1 file, 0 B; here:")


def test_names_of_archives(here: User, tmp_path: Path) -> None:
    (here.project / "em").mkdir()
    name = "x" * 251 + ".tar"
    assert here.quick("data", "put", "--pack", "em", f"data:{name}").code == 0
    (tmp_path / "store" / ".mine.yurt-pack").touch()
    found = here.quick("data", "ls", "data:", "--json").json["data"]["entries"]
    assert [each["name"] for each in found] == [".mine.yurt-pack", name]
    assert here.quick("data", "rm", "-y", f"data:{name}").code == 0
    assert [each.name for each in (tmp_path / "store").iterdir()] == [".mine.yurt-pack"]


@pytest.mark.parametrize("way", ["rsync", "tar", "archive"])
def test_no_git_into_a_repository(here: User, tmp_path: Path, way: str) -> None:
    """git runs commands of the configuration that it finds, for example at the next `git status`."""
    path = {"PATH": without_rsync(tmp_path / "bin")} if way == "tar" else {}
    mine = here.project / "mine"
    subprocess.run(["git", "init", "-q", mine], check=True)
    before = (mine / ".git" / "config").read_bytes()
    evil = tmp_path / "store" / "evil"
    for each in (evil / ".git", evil / "sub" / ".Git"):
        each.mkdir(parents=True)
        (each / "config").write_text("[core]\n\tfsmonitor = touch ran\n")
    (evil / "data").write_text("1")
    if way == "archive":
        subprocess.run(["tar", "-cf", tmp_path / "store" / "evil.tar", "-C", evil, "."], check=True)
    words = ("--unpack", "data:evil.tar") if way == "archive" else ("data:evil",)
    for target in (mine / "new",) if way == "archive" else (mine, mine / "new"):
        done = here("data", "get", *words, str(target), **path)
        assert done.code == 0 and "the .git of the source was left out" in done.err, done
        assert (target / "data").read_text() == "1" and not (target / "sub" / ".Git").exists()
    assert (mine / ".git" / "config").read_bytes() == before and not (mine / "new" / ".git").exists()
    if way == "rsync":
        assert here("data", "get", "data:evil", str(tmp_path / "elsewhere")).code == 0
        assert (tmp_path / "elsewhere" / ".git" / "config").exists()


def test_an_archive_with_very_deep_folders(here: User, tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "store" / "deep.tar", "w", format=tarfile.PAX_FORMAT) as archive:
        for depth in range(1, 1200):
            member = tarfile.TarInfo("d/" * depth)
            member.type, member.mode = tarfile.DIRTYPE, 0o755
            archive.addfile(member)
    done = here.quick("data", "get", "--unpack", "data:deep.tar", "deep")
    assert done.code == 5 and "nested too deeply" in done.err, done
    assert not [each for each in here.project.iterdir() if "deep" in each.name]


def test_a_link_of_the_project_is_uploaded_after_a_question(here: User, tmp_path: Path) -> None:
    """The author of a checkout could have made `data` a link to ~/.ssh; a path that the user types may be anywhere."""
    other = tmp_path / "other"
    other.mkdir()
    (other / "id_rsa").write_text("key")
    (here.project / "sets").symlink_to(other)
    for source in ("sets", "sets/id_rsa"):
        refused = here.quick("data", "put", source, "data:taken/")
        assert refused.code == 2 and f"'sets' is a link to {other}" in refused.err, refused
        assert f"yurt trust {other}" in refused.err
    assert not here.quick("data", "ls", "data:taken", "--json").json.get("data")
    assert here.quick("data", "put", str(other), "data:typed/").code == 0
    assert here.quick("trust", str(other)).code == 0
    assert here.quick("data", "put", "sets", "data:taken/").code == 0
