"""Wheels for the target are downloaded once, completely or not at all; source code comes with what builds it."""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import re
import shutil
import tarfile
import threading
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.envs.conftest import TARGETS, make_sdist, make_wheel, write
from tests.envs.package_index import Index, serving
from tests.wheels import make_repository
from yurt.envs import download, indexes, repository, sdist
from yurt.envs.declared import named
from yurt.envs.lock import Lock
from yurt.envs.resolve import resolve
from yurt.envs.target import Target
from yurt.envs.wheels import Wheel, _file, fetch
from yurt.errors import DownloadError, UserError
from yurt.model.progress import Event

TARGET = Target("3.11.2", "x86_64", "glibc 2.36")


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Index]:
    """An index with a password that is uv's only one."""
    shelf = tmp_path / "shelf"
    shelf.mkdir()
    for name in ("one", "two"):
        make_wheel(shelf, name)
    with serving(shelf) as served:
        monkeypatch.setenv("UV_DEFAULT_INDEX", served.address)
        monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "uv cache"))
        yield served


def locked(project: Path, text: str, target: Target = TARGET) -> Lock:
    return resolve(named(write(project, {"requirements.txt": text}), "requirements.txt"), target)


def listing(folder: Path) -> list[str]:
    """Return the files of a cache, without its own records."""
    files = (each.relative_to(folder) for each in folder.rglob("*") if each.is_file())
    return sorted(str(each) for each in files if each.parts[0] != "lists")


def check(wheels: list[Wheel], folder: Path) -> None:
    for each in wheels:
        content = each.path.read_bytes()
        assert each.path == folder / each.sha256 / each.file
        assert (hashlib.sha256(content).hexdigest(), len(content)) == (each.sha256, each.size)


def test_the_best_wheel_for_each_target(project: Path, shelf: Path, tmp_path: Path) -> None:
    tags = (
        *("py3-none-any", "cp39-cp39-manylinux2014_x86_64", "cp311-cp311-manylinux_2_35_x86_64"),
        *("cp39-abi3-manylinux_2_17_aarch64", "cp312-cp312-manylinux_2_34_aarch64", "cp311-cp311-musllinux_1_1_x86_64"),
    )
    for tag in tags:
        make_wheel(shelf, "one", tag=tag)
    found = [fetch(locked(project, "one\n", target), target, tmp_path / "cache") for target in TARGETS]
    assert [wheels[0].file.removeprefix("one-1.0-").removesuffix(".whl") for wheels in found] == [
        *("cp39-cp39-manylinux2014_x86_64", "cp311-cp311-manylinux_2_35_x86_64"),
        *("cp39-abi3-manylinux_2_17_aarch64", "cp311-cp311-musllinux_1_1_x86_64"),
    ]
    for wheels in found:
        check(wheels, tmp_path / "cache")


def test_compiled_wheels_of_the_public_index(project: Path, tmp_path: Path) -> None:
    for target, platform in zip(TARGETS, ("x86_64", "x86_64", "aarch64", "musllinux"), strict=True):
        wheels = fetch(locked(project, "markupsafe==3.0.2\nsix\n", target), target, tmp_path / "cache")
        assert [each.name for each in wheels] == ["markupsafe", "six"]
        assert f"cp{target.python_version.replace('.', '')}" in wheels[0].file and platform in wheels[0].file
        check(wheels, tmp_path / "cache")


def test_source_code_comes_with_its_build_requirements(project: Path, shelf: Path, tmp_path: Path) -> None:
    system = '[build-system]\nrequires = ["{}"]\nbuild-backend = "{}"\n'
    make_sdist(shelf, "plain", setup__py="import setuptools\n")
    make_sdist(shelf, "modern", pyproject__toml=system.format("backend>=1", "backend"))
    make_sdist(shelf, "backend", pyproject__toml=system.format("base", "base"))
    for name in ("setuptools", "wheel", "base", "one"):
        make_wheel(shelf, name)
    wheels = fetch(locked(project, "one\nplain\nmodern\n"), TARGET, tmp_path / "cache")
    kinds = {each.name: (each.source, each.build) for each in wheels}
    assert kinds == {
        "modern": (True, False),
        "one": (False, False),
        "plain": (True, False),
        "backend": (True, True),
        "setuptools": (False, True),
        "wheel": (False, True),
        "base": (False, True),
    }
    assert fetch(locked(project, "one\nplain\nmodern\n"), TARGET, tmp_path / "cache") == wheels
    check(wheels, tmp_path / "cache")


def test_source_code_that_cannot_be_built(project: Path, shelf: Path, tmp_path: Path) -> None:
    make_sdist(shelf, "strange", notes__txt="no build\n")
    with pytest.raises(UserError, match=r"'strange' cannot be sent to a site without internet: .*setup\.py"):
        fetch(locked(project, "strange\n"), TARGET, tmp_path / "cache")


def test_only_absent_files_are_downloaded(project: Path, index: Index, tmp_path: Path) -> None:
    cache, events = tmp_path / "cache", list[Event]()
    both, one = locked(project, "one\ntwo\n"), locked(project, "one\n")
    index.downloads.clear()
    fetch(one, TARGET, cache)
    assert index.downloads == ["one-1.0-py3-none-any.whl"]
    wheels = fetch(both, TARGET, cache, watch=events.append)
    assert index.downloads[1:] == ["two-1.0-py3-none-any.whl"]
    assert [(each.done, each.total) for each in events] == [(0, 1), (1, 1)]
    index.downloads.clear()
    assert fetch(both, TARGET, cache, watch=events.append) == wheels
    wheels[0].path.unlink()
    assert fetch(both, TARGET, cache) == wheels
    assert index.downloads == [wheels[0].file]
    check(wheels, cache)


def test_a_download_that_is_cut_short_is_tried_again(
    project: Path, index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = locked(project, "one\n")
    index.cut = 1
    check(fetch(lock, TARGET, tmp_path / "cache"), tmp_path / "cache")
    index.cut = 99
    with pytest.raises(DownloadError, match=r"cannot download from 127\.0\.0\.1: the connection was closed"):
        fetch(lock, TARGET, tmp_path / "other")
    assert listing(tmp_path / "other") == []


def test_another_content_than_the_locked_one(project: Path, index: Index, tmp_path: Path) -> None:
    lock = locked(project, "one\n")
    with pytest.raises(UserError, match=r"another file than the locked one|does not match its hash"):
        wrong = re.sub(r"sha256:\w{64}", f"sha256:{'0' * 64}", lock.text)
        fetch(Lock(wrong), TARGET, tmp_path / "cache")
    sha256 = next(iter(lock.hashes()["one"]))
    with pytest.raises(UserError, match=r"'x\.whl' does not match its hash"):
        downloader = download.Downloader(tmp_path / "cache", indexes.Settings(), {})
        list(downloader.all([(Path(__file__).as_uri(), sha256, "x.whl")]))
    assert listing(tmp_path / "cache") == []


def test_an_interrupted_download_leaves_nothing(project: Path, index: Index, tmp_path: Path) -> None:
    def interrupt(event: Event) -> None:
        if event.done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fetch(locked(project, "one\ntwo\n"), TARGET, tmp_path / "cache", watch=interrupt)
    assert not list((tmp_path / "cache").glob("part-*"))
    for name in listing(tmp_path / "cache"):
        assert hashlib.sha256((tmp_path / "cache" / name).read_bytes()).hexdigest() == Path(name).parent.name


def test_a_package_in_a_repository_is_packed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    url = make_repository(tmp_path / "thing", "thing", "4.5")
    lock = locked(tmp_path / "project", f"thing @ git+{url}\n")
    (found,) = fetch(lock, TARGET, tmp_path / "cache")
    assert (found.name, found.file, found.source) == ("thing", "thing-4.5.tar.gz", True)
    check([found], tmp_path / "cache")
    shutil.rmtree(tmp_path / "thing")
    shutil.rmtree(tmp_path / "cache" / "lists")
    assert fetch(lock, TARGET, tmp_path / "cache") == [found]
    with pytest.raises(UserError, match="'thing' cannot be sent to a site without internet: git cannot fetch"):
        fetch(lock, TARGET, tmp_path / "other")


@contextlib.contextmanager
def answering(content: bytes, size: str = "") -> Iterator[str]:
    """Serve this content at each address."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", size or str(len(content)))
            self.end_headers()
            self.wfile.write(content if self.command == "GET" else b"")

        do_HEAD = do_GET

        def log_message(self, *_words: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()


def test_a_name_that_leads_out_of_the_cache(project: Path, shelf: Path, tmp_path: Path) -> None:
    """It was a path: the file of a package replaced another file of this machine."""
    system = '[project]\nname = "one"\nversion = "1.0"\n'
    made = make_sdist(shelf, "one", pyproject__toml=system).rename(tmp_path / "made")
    with answering(made.read_bytes()) as address:
        lock = locked(project, f"one @ {address}/..%2F..%2Foutside%2Fone-1.0.tar.gz\n")
        with pytest.raises(UserError, match="'one' cannot be sent to a site without internet"):
            fetch(lock, TARGET, tmp_path / "cache")
    assert not (tmp_path / "outside").exists()


@pytest.mark.parametrize("sha256", ["", "../../x", "0" * 63, "0" * 64 + "/", "O" * 64])
def test_a_hash_that_is_none(sha256: str, tmp_path: Path) -> None:
    assert _file("one", {"url": "https://x.invalid/one.tar.gz", "hashes": {"sha256": sha256}}, tmp_path) is None


def test_a_size_that_is_no_number(tmp_path: Path) -> None:
    with answering(b"content", "abc") as address:
        downloader = download.Downloader(tmp_path / "cache", indexes.Settings(), {})
        assert downloader.one(f"{address}/x") == b"content"


@pytest.mark.parametrize("name", ["x.zip", "x.tar.gz"])
def test_source_code_that_fills_the_memory(tmp_path: Path, name: str) -> None:
    huge = b"\0" * (sdist.LARGEST + 1)
    if name.endswith(".zip"):
        with zipfile.ZipFile(tmp_path / name, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("x-1/pyproject.toml", huge)
    else:
        with tarfile.open(tmp_path / name, "w:gz") as tar:
            member = tarfile.TarInfo("x-1/pyproject.toml")
            member.size = len(huge)
            tar.addfile(member, io.BytesIO(huge))
    with pytest.raises(ValueError, match=r"its pyproject\.toml is larger than 1 MB"):
        sdist.build_requirements(tmp_path / name)


@pytest.mark.parametrize("text", ["build-system = 1\n", "[build-system]\nrequires = 5\n", "[build-system]\n"])
def test_a_build_system_of_another_type(tmp_path: Path, text: str) -> None:
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        archive.writestr("x-1/pyproject.toml", text)
    assert set(sdist.build_requirements(tmp_path / "x.zip")) <= {"setuptools", "wheel"}


def test_source_code_that_is_damaged(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "x.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x-1/setup.py", os.urandom(9) * 99)
    content = bytearray((tmp_path / "x.zip").read_bytes())
    content[45:60] = b"\xff" * 15
    (tmp_path / "x.zip").write_bytes(content)
    with pytest.raises(ValueError, match="not a readable archive"):
        sdist.build_requirements(tmp_path / "x.zip")


def test_a_repository_whose_declaration_is_a_device(tmp_path: Path) -> None:
    """It was read to the end of the memory."""
    (tmp_path / "pyproject.toml").symlink_to("/dev/zero")
    assert repository._as_it_is(tmp_path, tmp_path, "thing") is None
