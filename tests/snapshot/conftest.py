"""A project with awkward files, and the places code is uploaded to: this machine and both clusters."""

from __future__ import annotations

import itertools
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.transport.conftest import site
from tests.user import end_masters
from yurt.lab import Lab
from yurt.transport.base import Host
from yurt.transport.local import LocalHost

count = itertools.count()

AWKWARD = [
    b"plain",
    b"with space",
    b"quo'te\"s",
    b"new\nline",
    b"non-utf8-\xff\xfe",
    b"\xc3\xbc.py",
    b"-dash",
    b"a/b/c",
    b"*",
    b"back\\slash",
    b"GIT~1",
    b"con",
    b"x:y",
    b".g\xe2\x80\x8cit",
]


@pytest.fixture(scope="module", autouse=True)
def runtime() -> Iterator[None]:
    """Each test module has its own connections, which are closed at its end."""
    folder = Path(f"/tmp/ys-{os.getpid()}-{next(count)}")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("YURT_RUNTIME_DIR", str(folder))
        yield
    if folder.exists():
        end_masters(folder)


def write_awkward(root: Path) -> None:
    for name in AWKWARD:
        path = Path(os.fsdecode(os.path.join(os.fsencode(root), name)))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"content of " + name)
    (root / "run.sh").write_text("#!/bin/sh\n")
    (root / "run.sh").chmod(0o755)
    (root / "link").symlink_to("a/b")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    root.mkdir()
    write_awkward(root)
    (root / "crlf").write_bytes(b"a\r\nb\r\n")
    (root / ".gitattributes").write_text("* text eol=crlf\n")
    (root / "big").write_bytes(os.urandom(200_000))
    return root


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "store.git"


Place = tuple[Host, str]
"""A host, and a folder on it that does not exist yet."""


class Here:
    @pytest.fixture
    def place(self, tmp_path: Path) -> Iterator[Place]:
        yield LocalHost(), str(tmp_path / "far side" / "yurt")
        subprocess.run(["chmod", "-R", "u+w", str(tmp_path)], check=True)


@pytest.mark.lab
@pytest.mark.parametrize("cluster", ["alpha", "beta"])
class OnClusters:
    @pytest.fixture
    def place(self, lab: Lab, cluster: str) -> Iterator[Place]:
        host = site(lab, cluster)
        folder = f"/lustre/scratch/alice/send {next(count)}"
        yield host, folder
        host.run('chmod -R u+w "$1"; rm -rf "$1"', folder)


def listing(host: Host, folder: str) -> bytes:
    """Every path below a folder with its type and its content."""
    script = 'cd "$1" && find . -mindepth 1 -type f -exec sha1sum -z {} + -o -type l -printf "%p -> %l\\0" | sort -z'
    return host.run(script, folder).out


WRONG = """
cd "$1/snapshots/$2" || exit 1
find . ! -type l -perm /222 -printf "may be written: %p\\n" -o ! -type l -perm /077 -printf "not private: %p\\n"
find . -type d -empty -printf "empty folder: %p\\n"
ls -A ../../incoming
"""


def assert_arrived(host: Host, project: Path, folder: str, tree: str) -> None:
    assert listing(host, f"{folder}/snapshots/{tree}") == listing(LocalHost(), str(project))
    answer = host.run(WRONG, folder, tree)
    assert (answer.code, answer.text) == (0, ""), "an incomplete or invalid checkout was left"
