"""Roots with another Slurm: built once, whatever is killed, and never removed while a lab uses them."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import threading
import time
from base64 import b64decode
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.calls import call
from yurt.errors import RefusedError, UnreachableError, UserError
from yurt.lab import Lab, mirror, packages, roots, versions
from yurt.testing.waiting import eventually

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to build a root file system")

BUILDER = """#!/bin/sh
# Builds a root as mmdebstrap does, with nothing but the version of its Slurm.
for word do target=$source source=$word; done # the last two words
echo started >> "$YURT_LAB_ROOTS/builds"
echo 'I: installing packages...' >&2
mkdir -p "$target/var/lib/dpkg" "$target/etc/apt/apt.conf.d"
sleep "${PAUSE:-0}"
printf 'Package: slurmctld\\nStatus: install ok installed\\nArchitecture: all\\nVersion: %s\\n' "$VERSION" \
  > "$target/var/lib/dpkg/status"
echo "$source" > "$target/etc/apt/sources.list"
"""
BUILD = "from yurt.lab import roots; roots.build('24.11')"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder of roots, and a quick builder instead of mmdebstrap."""
    program = tmp_path / "bin" / "mmdebstrap"
    program.parent.mkdir()
    program.write_text(BUILDER)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("YURT_LAB_ROOTS", str(tmp_path))
    monkeypatch.setenv("VERSION", "24.11.5-1")
    monkeypatch.setattr(mirror, "source", lambda suite: f"deb http://mirror/debian {suite} main")
    monkeypatch.setattr(mirror, "options", list)
    return tmp_path


def builds(place: Path) -> int:
    log = place / "builds"
    return log.read_text().count("started") if log.exists() else 0


def test_it_is_built_once(place: Path) -> None:
    steps: list[str] = []
    for _each in range(2):
        root = roots.build("24.11", watch=lambda event: steps.append(event.text))
    assert builds(place) == 1 and steps == ["building the root with Slurm 24.11: installing packages"]
    assert root == place / "lab-roots" / "24.11" and versions.installed(root) == "24.11.5"
    assert sorted(each.name for each in root.parent.iterdir()) == ["24.11", "24.11.lock"]
    assert root.parent.stat().st_mode & 0o777 == 0o700 and not (root / "etc/apt/sources.list").exists()


def test_two_processes_build_it_once(place: Path) -> None:
    environment = {**os.environ, "PAUSE": "0.5"}
    both = [subprocess.Popen([sys.executable, "-c", BUILD], env=environment) for _each in range(2)]
    assert [each.wait(60) for each in both] == [0, 0] and builds(place) == 1


def test_killed_at_any_moment(place: Path) -> None:
    process = subprocess.Popen([sys.executable, "-c", BUILD], env={**os.environ, "PAUSE": "30"})
    eventually(lambda: builds(place) == 1)
    time.sleep(random.random())
    process.kill()
    process.wait()
    wanted = str(place / "lab-roots" / "24.11.new").encode()
    eventually(lambda: not [each for each in Path("/proc").glob("[0-9]*") if wanted in _arguments(each)])
    assert not roots.built("24.11")
    assert versions.installed(roots.build("24.11")) == "24.11.5"
    assert sorted(each.name for each in (place / "lab-roots").iterdir()) == ["24.11", "24.11.lock"]


def _arguments(process: Path) -> list[bytes]:
    try:
        return (process / "cmdline").read_bytes().split(b"\0")
    except OSError:
        return []


def test_a_builder_that_hangs(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAUSE", "30")
    with pytest.raises(RefusedError, match="could not be built: it took longer than 1 s"):
        roots.build("24.11", timeout=0.7)
    assert not roots.built("24.11")


def test_a_mirror_with_another_version(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VERSION", "27.05.1-2")
    with pytest.raises(RefusedError, match=r"trixie of your mirror has Slurm 27\.05\.1") as caught:
        roots.build("24.11")
    assert caught.value.code == "lab-root-failed" and not roots.built("24.11")


def test_a_small_disk(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(roots, "DISK_NEEDED_MB", 10**9)
    with pytest.raises(RefusedError, match="needs 1000000000 MB of disk space") as caught:
        roots.build("24.11")
    assert caught.value.code == "lab-disk-low" and builds(place) == 0


def test_a_folder_of_another_user(place: Path) -> None:
    (place / "lab-roots").mkdir()
    os.chown(place / "lab-roots", 12345, 12345)
    with pytest.raises(RefusedError, match="belongs to another user"):
        roots.build("24.11")


def test_a_root_in_use_is_not_removed(place: Path) -> None:
    roots.build("24.11")
    with roots.using("24.11"), pytest.raises(UnreachableError) as caught:
        roots.remove()
    assert caught.value.code == "lab-busy" and roots.built("24.11")
    assert roots.remove() == ["24.11"] and roots.remove() == []
    assert [each.name for each in (place / "lab-roots").iterdir()] == ["24.11.lock"]
    with pytest.raises(UnreachableError), roots.using("24.11"):
        raise AssertionError("it was removed")


@pytest.mark.slow
@pytest.mark.skipif(bool(packages.missing([roots.BUILDER])), reason="needs the Debian package mmdebstrap")
def test_a_mirror_that_does_not_respond(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("YURT_LAB_ROOTS", str(tmp_path))
    monkeypatch.setattr(mirror, "source", lambda suite: f"deb http://127.0.0.1:9/debian {suite} main")
    with pytest.raises(RefusedError) as caught:
        roots.build("24.11")
    assert caught.value.code == "lab-root-failed" and "127.0.0.1" in caught.value.message, caught.value
    assert "\n" not in str(caught.value)


def test_the_key_ring_of_a_mirror(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mirror, "SOURCES", tmp_path)
    (tmp_path / "sources.list.d").mkdir()
    (tmp_path / "sources.list").write_text(
        "# deb http://a/debian x main\ndeb [arch=amd64 signed-by=/k/a.gpg] http://a/debian x main\n"
    )
    (tmp_path / "sources.list.d" / "b.sources").write_text(
        "Types: deb\n# old\nURIs: http://b/debian/\nSuites: x\nSigned-By: /k/b.gpg\n\n"
        "Types: deb\nURIs: http://c/debian\nSuites: x\nSigned-By:\n -----BEGIN PGP\n\n"
        "Enabled: no\nURIs: http://d/debian\nSigned-By: /k/d.gpg\n"
    )
    found = {name: mirror.signed_by(f"http://{name}/debian") for name in "abcde"}
    assert found == {"a": "/k/a.gpg", "b": "/k/b.gpg", "c": "", "d": "", "e": ""}


@pytest.fixture
def login(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An apt whose mirrors need a login; return the folder of its configuration."""
    etc = tmp_path / "apt"
    (etc / "auth.conf.d").mkdir(parents=True)
    (tmp_path / "apt.conf").write_text(f'Dir::Etc "{etc}";\n')
    monkeypatch.setenv("APT_CONFIG", str(tmp_path / "apt.conf"))
    return etc


def test_the_logins_of_a_mirror_are_not_copied(place: Path, login: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The builder gets the paths, and neither its arguments nor the root have the password."""
    program = place / "bin" / "mmdebstrap"
    program.write_text(BUILDER + 'printf "%s\\n" "$@" > "$YURT_LAB_ROOTS/arguments"\n')
    monkeypatch.setattr(mirror, "options", mirror.logins)
    assert mirror.logins() == [f'Dir::Etc::netrcparts "{login}/auth.conf.d/";']
    (login / "auth.conf").write_text("machine http://mirror login me password hunter2\n")
    root = roots.build("24.11")
    arguments = (place / "arguments").read_text()
    assert f'\n--aptopt=Dir::Etc::netrc "{login}/auth.conf";\n' in arguments
    assert f'\n--aptopt=Dir::Etc::netrcparts "{login}/auth.conf.d/";\n' in arguments
    assert "hunter2" not in arguments
    assert not [path for path in root.rglob("*") if path.is_file() and "hunter2" in path.read_text()]


@pytest.mark.skipif(bool(packages.missing([roots.BUILDER])), reason="needs the Debian package mmdebstrap")
@pytest.mark.parametrize("file", ["auth.conf", "auth.conf.d/mirror.conf"])
def test_a_mirror_with_a_login(tmp_path: Path, login: Path, monkeypatch: pytest.MonkeyPatch, file: str) -> None:
    """The real builder logs in to a mirror, which then has nothing for it."""
    seen: set[str] = set()

    class Mirror(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            given = self.headers.get("Authorization", "")
            seen.add(b64decode(given.removeprefix("Basic ")).decode())
            self.send_error(404 if given else 401)

        def log_message(self, *_words: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Mirror) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}"
        (login / file).write_text(f"machine {address} login me password hunter2\n")
        (login / file).chmod(0o600)
        monkeypatch.setenv("YURT_LAB_ROOTS", str(tmp_path))
        monkeypatch.setattr(mirror, "source", lambda suite: f"deb {address}/debian {suite} main")
        with pytest.raises(RefusedError) as caught:
            roots.build("24.11")
        server.shutdown()
    assert seen == {"me:hunter2"} and "404" in caught.value.message, (seen, caught.value)


def test_unknown_versions_and_a_lab_of_another_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("YURT_DATA_HOME", str(tmp_path))
    with pytest.raises(UserError, match=r"the lab has no Slurm 21\.08"):
        versions.check("21.08")
    lab = Lab()
    (lab.instance.folder / "alpha" / "images").mkdir(parents=True)
    with pytest.raises(UserError) as caught:
        lab._slurm_version("26.05")
    assert "--slurm cannot change the version of a lab" in caught.value.message
    assert "--slurm 26.05 --instance NAME" in caught.value.hint


def test_roots_are_removed_only_with_a_wipe(tmp_path: Path) -> None:
    homes = {"YURT_CONFIG_HOME": str(tmp_path / "config"), "YURT_DATA_HOME": str(tmp_path / "data")}
    done = call("lab", "down", "--roots", environment={**homes, "YURT_LAB_ROOTS": str(tmp_path)})
    assert (done.code, done.err.splitlines()[0]) == (2, "yurt: --roots needs --wipe")
