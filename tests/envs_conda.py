"""A real conda for tests: built once from PyPI, with a local channel of tiny packages, installed on a cluster.

conda is on PyPI only inside the wheel of conda-lock. The fixture `conda` installs it in ~/miniforge3 of alice.
"""

from __future__ import annotations

import hashlib
import io
import json
import platform
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.downloads import Unavailable, cached

if TYPE_CHECKING:
    from tests.lab.conftest import Ssh
    from yurt.lab import Lab

HOME = "/home/alice/miniforge3"
CONDA_LOCK = "conda-lock==4.0.3"
VENDOR = "conda_lock._vendor."
NEEDED = (
    *("archspec", "boltons", "conda-package-handling", "conda-package-streaming", "distro", "frozendict", "jsonpatch"),
    *("packaging", "platformdirs", "pluggy", "python-sat", "requests", "ruamel.yaml", "setuptools<81", "tqdm"),
    *("truststore", "zstandard"),
)
"""What conda imports. python-sat replaces conda's default solver pycosat, which has no wheels."""

CONDARC = f"""\
channels: [file://{HOME}/channel]
default_channels: []
solver: classic
sat_solver: pysat
offline: true
always_yes: true
report_errors: false
add_pip_as_python_dependency: false
"""

PROGRAM = f"""\
#!{HOME}/bin/python
import sys
from conda.cli import main
sys.exit(main())
"""

HOOK = """\
conda() {
  case ${1-} in
    activate | deactivate | reactivate)
      conda_answer=$(PS1=${PS1-} "$CONDA_EXE" shell.posix "$@") || return
      eval "$conda_answer"
      unset conda_answer
      hash -r ;;
    *) "$CONDA_EXE" "$@" ;;
  esac
}
[ -n "${CONDA_SHLVL+x}" ] || export CONDA_SHLVL=0
"""
"""conda.sh, which conda-lock leaves out. The commands for activation come from conda itself."""


@pytest.fixture(scope="module")
def conda(lab: Lab) -> Iterator[Callable[[str], None]]:
    """A function that installs conda in alice's home on a cluster. It is removed after the tests of the module."""
    from tests.lab.conftest import Ssh

    ssh = Ssh(lab)
    used: list[str] = []

    def install_on(cluster: str) -> None:
        used.append(cluster)
        install(ssh, cluster)

    yield install_on
    for cluster in used:
        ssh(cluster, f"rm -rf {HOME}")


def built_for(ssh: Ssh, cluster: str) -> Path:
    """Return the files of conda for the Python of a cluster. Skips the test if it cannot be built."""
    python = ssh(cluster, "python3 -c 'import sys; print(\"%d.%d.%d\" % sys.version_info[:3])'").splitlines()[-1]
    recipe = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()[:8]
    return cached(f"conda-{python}-{recipe}", lambda folder: build(folder, python))


INSTALLER = f"""\
#!/bin/bash
while getopts bp: option; do [ "$option" != p ] || prefix=$OPTARG; done
python3 -m venv --without-pip "$prefix" || exit
tail -n +7 "$0" | tar -C "$prefix" -xz --no-same-owner || exit
sed -i "s|{HOME}|$prefix|" "$prefix/bin/conda" "$prefix/.condarc"
exit
"""
"""An installer as that of Miniforge: options, and an archive after the script."""


def installer(ssh: Ssh, cluster: str, file: Path) -> None:
    """Write an installer of conda for a cluster. Skips the test if conda cannot be built."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz", compresslevel=1) as archive:
        archive.add(built_for(ssh, cluster), ".")
    file.write_bytes(INSTALLER.encode() + packed.getvalue())


def install(ssh: Ssh, cluster: str) -> None:
    """Install conda on a cluster as alice. Skips the test if it cannot be built."""
    built = built_for(ssh, cluster)
    ssh(cluster, f"rm -rf {HOME} && python3 -m venv --without-pip {HOME}")
    ssh.send(built, cluster, HOME)


def build(folder: Path, python: str) -> None:
    """Write the files of a conda installation for a version of Python, without its Python."""
    short = python.rpartition(".")[0]
    site = folder / "lib" / f"python{short}" / "site-packages"
    version = ["--python-version", short, "--only-binary=:all:"]
    _pip("install", "--target", str(site), *version, *NEEDED)
    _pip("download", "--no-deps", "--dest", str(folder / "wheel"), CONDA_LOCK)
    (wheel,) = (folder / "wheel").iterdir()
    zipfile.ZipFile(wheel).extractall(folder / "wheel")
    shutil.move(folder / "wheel" / VENDOR.replace(".", "/") / "conda", site / "conda")
    shutil.rmtree(folder / "wheel")
    for source in (site / "conda").rglob("*.py"):
        text = source.read_text()
        if VENDOR in text:
            source.write_text(text.replace(VENDOR, ""))
    _write(site / "conda" / "shell" / "etc" / "profile.d" / "conda.sh", HOOK)
    _write(folder / "bin" / "conda", PROGRAM).chmod(0o755)
    _write(folder / ".condarc", CONDARC)
    _write(folder / "conda-meta" / "history", "")
    channel(folder / "channel", python)


def _write(file: Path, text: str) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


def _pip(*arguments: str) -> None:
    argv = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q", *arguments]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Unavailable((done.stderr.strip().splitlines() or ["pip failed"])[-1])


def channel(folder: Path, python: str) -> None:
    """Write a channel: `python` (a link to the system's), `tiny` (a module), `hello` (a program), `gpu` (for CUDA)."""
    short = python.rpartition(".")[0]
    native = "linux-64" if platform.machine() == "x86_64" else f"linux-{platform.machine()}"
    own = {"pyvenv.cfg": "home = /usr/bin\ninclude-system-site-packages = false\n"}
    links = {f"bin/python{short}": f"/usr/bin/python{short}", "bin/python3": f"python{short}", "bin/python": "python3"}
    tiny = {
        "site-packages/tiny.py": "x = 1\n",
        "site-packages/tiny-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n",
        "site-packages/tiny-1.0.dist-info/INSTALLER": "conda",
    }
    hello = {
        "bin/hello": f"#!/bin/sh\necho hello from {PLACEHOLDER} $HELLO\n",
        "etc/conda/activate.d/hello.sh": "export HELLO=on\n",
        "etc/conda/deactivate.d/hello.sh": "unset HELLO\n",
    }
    records = {
        native: [
            _package(folder / native, {"name": "python", "version": python, "build": "0_cpython"}, own, links),
            _package(folder / native, {"name": "hello", "version": "2.0"}, hello),
            _package(folder / native, {"name": "gpu", "version": "1.0", "depends": ["__cuda >=12"]}, {"gpu": "1"}),
        ],
        "noarch": [
            _package(
                folder / "noarch", {"name": "tiny", "version": "1.0", "depends": ["python"], "noarch": "python"}, tiny
            )
        ],
    }
    for subdir, packages in records.items():
        listed = {"info": {"subdir": subdir}, "packages": dict(packages), "packages.conda": {}, "repodata_version": 1}
        _write(folder / subdir / "repodata.json", json.dumps(listed))


PLACEHOLDER = "/PLACEHOLDER_PREFIX"


def _package(
    folder: Path, about: Mapping[str, Any], files: Mapping[str, str], links: Mapping[str, str] | None = None
) -> tuple[str, dict[str, Any]]:
    """Write one package in conda's first format; return its file name and its record for repodata.json."""
    links = links or {}
    index = {"build": "0", "build_number": 0, "depends": [], "subdir": folder.name, "timestamp": 1700000000000, **about}
    paths: list[dict[str, Any]] = []
    for path, text in files.items():
        digest = hashlib.sha256(text.encode()).hexdigest()
        entry = {"_path": path, "path_type": "hardlink", "sha256": digest, "size_in_bytes": len(text)}
        paths.append(entry | ({"prefix_placeholder": PLACEHOLDER, "file_mode": "text"} if PLACEHOLDER in text else {}))
    empty = hashlib.sha256(b"").hexdigest()
    paths += [{"_path": path, "path_type": "softlink", "sha256": empty, "size_in_bytes": 0} for path in links]
    info = {
        "info/index.json": json.dumps(index),
        "info/paths.json": json.dumps({"paths": paths, "paths_version": 1}),
        "info/files": "\n".join([*files, *links]) + "\n",
    }
    if "noarch" in about:
        info["info/link.json"] = json.dumps({"noarch": {"type": about["noarch"]}, "package_metadata_version": 1})
    folder.mkdir(parents=True, exist_ok=True)
    archive = folder / "{name}-{version}-{build}.tar.bz2".format_map(index)
    with tarfile.open(archive, "w:bz2") as target:
        for path, text in {**info, **files}.items():
            member = tarfile.TarInfo(path)
            member.size, member.mode = len(text.encode()), 0o755 if path.startswith("bin/") else 0o644
            target.addfile(member, io.BytesIO(text.encode()))
        for path, to in links.items():
            member = tarfile.TarInfo(path)
            member.type, member.linkname = tarfile.SYMTYPE, to
            target.addfile(member)
    content = archive.read_bytes()
    hashes = {"md5": hashlib.md5(content).hexdigest(), "sha256": hashlib.sha256(content).hexdigest()}
    return archive.name, {**index, **hashes, "size": len(content)}
