"""Root file systems with another Slurm than this machine's, built once by mmdebstrap and shared by all labs.

A root appears under its final name only when it is complete. Its lock file has one writer, which builds or removes it,
or many readers: the fabric of each cluster that uses it. Every process here can be killed at any moment.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import stat
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from yurt.errors import RefusedError, UnreachableError
from yurt.lab import mirror, packages, versions
from yurt.model.progress import Event, Watch, unwatched
from yurt.model.sizes import MB

BUILDER = "mmdebstrap"
"""The package that builds roots."""

MORE_PACKAGES = ("mount", "hostname", "xz-utils", "ca-certificates")
"""What a root needs besides the packages of the lab; an installed Debian has these."""

DISK_NEEDED_MB = 1500
"""The size of a root while it is built, with the packages it is made from."""

TIMEOUT = 1800.0
STEPS = 12
"""About the number of messages of mmdebstrap."""


def folder() -> Path:
    """Return the folder of all roots. Only root may read it: it has programs of root that every user could run."""
    return Path(os.environ.get("YURT_LAB_ROOTS") or "/var/cache/yurt") / "lab-roots"


def path(version: str) -> Path:
    """Return the root with a Slurm version; '/', the root of this machine, for an empty one."""
    return folder() / version if version else Path("/")


def built(version: str) -> bool:
    return path(version).is_dir()


@contextmanager
def using(version: str) -> Iterator[None]:
    """Keep others from removing a root. Raises UnreachableError while another process builds or removes it."""
    if not version:
        yield
        return
    with _locked(version, fcntl.LOCK_SH):
        if not built(version):
            raise _busy(version)
        yield


def build(version: str, *, timeout: float = TIMEOUT, watch: Watch = unwatched) -> Path:
    """Return the root with a Slurm version, and build it if there is none. The package mmdebstrap must be installed.

    If another process builds it, wait. Raises RefusedError if the disk is too small, or the mirror does not have it.
    """
    root = path(version)
    if built(version):
        return root
    folder().parent.mkdir(parents=True, exist_ok=True)
    folder().mkdir(exist_ok=True, mode=0o700)
    deadline = time.monotonic() + timeout
    while True:
        try:
            with _locked(version, fcntl.LOCK_EX):
                if not root.is_dir():
                    _build(version, root, deadline - time.monotonic(), watch)
                return root
        except UnreachableError:
            if time.monotonic() > deadline:
                raise
            watch(Event(f"waiting: another process builds the root with Slurm {version}"))
            time.sleep(0.5)


def remove(watch: Watch = unwatched) -> list[str]:
    """Remove all roots; return their versions. Raises UnreachableError if a running lab uses one."""
    removed = []
    for version in versions.RELEASES:
        root = path(version)
        if not any(each.exists() for each in (root, *_leftovers(root))):
            continue
        watch(Event(f"removing the root with Slurm {version}"))
        with _locked(version, fcntl.LOCK_EX):
            _clean(root)
            if root.exists():
                root.rename(root.with_name(f"{version}.old"))
                removed.append(version)
            _clean(root)
    return removed


def _leftovers(root: Path) -> list[Path]:
    """Return the folders that a build or a removal leaves behind if it is killed."""
    return [root.with_name(root.name + suffix) for suffix in (".new", ".old", ".tmp")]


def _clean(root: Path) -> None:
    for each in _leftovers(root):
        if each.exists():
            shutil.rmtree(each)


@contextmanager
def _locked(version: str, kind: int) -> Iterator[None]:
    about = folder().lstat()
    if about.st_uid != 0 or not stat.S_ISDIR(about.st_mode) or about.st_mode & 0o022:
        raise RefusedError(
            f"{folder()} belongs to another user, or others can write to it",
            code="lab-root-failed",
            hint="remove it, or choose another folder with `YURT_LAB_ROOTS=FOLDER`",
        )
    lock = folder() / f"{version}.lock"
    descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            raise _busy(version) from None
        yield
    finally:
        os.close(descriptor)


def _busy(version: str) -> UnreachableError:
    return UnreachableError(
        f"a running lab uses the root with Slurm {version}, or another process builds or removes it",
        code="lab-busy",
        hint="stop that lab with `yurt lab down`, or wait, then run the command again",
    )


def _build(version: str, root: Path, timeout: float, watch: Watch) -> None:
    _clean(root)
    aside = root.with_name(f"{version}.new")
    _check_disk(version)
    release = versions.RELEASES[version]
    source = mirror.source(release.suite)
    if not source:
        raise _failed(version, "apt has no Debian mirror", "add one to the sources of apt")
    aptopts = ['APT::Install-Recommends "false"', *release.options, *mirror.options()]
    names = ",".join((*packages.PACKAGES, *MORE_PACKAGES))
    argv = [BUILDER, "--mode=root", "--variant=apt", "--components=main", f"--include={names}"]
    argv += [*(f"--aptopt={each}" for each in aptopts), release.suite, str(aside), source]
    # If this process is killed, so is the builder, with its mounts.
    contained = ["setpriv", "--pdeathsig", "KILL", "unshare", "--mount", "--pid", "--fork", "--kill-child"]
    _run_builder(version, [*contained, "--mount-proc", *argv], timeout, watch)
    found = versions.installed(aside)
    if versions.series(found) != version:
        _clean(root)
        raise _failed(version, f"{release.suite} of your mirror has Slurm {found or 'of no version'}", "")
    for name in ("etc/apt/sources.list", "etc/apt/apt.conf.d/99mmdebstrap"):
        (aside / name).unlink(missing_ok=True)  # they can contain the password of a proxy
    aside.chmod(0o755)
    aside.rename(root)
    _clean(root)


def _run_builder(version: str, argv: list[str], timeout: float, watch: Watch) -> None:
    temporary = folder() / f"{version}.tmp"
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C.UTF-8", "TMPDIR": str(temporary)}
    temporary.mkdir(mode=0o700)
    lines: list[str] = []
    late = threading.Event()
    with subprocess.Popen(
        argv,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
    ) as process:

        def stop() -> None:
            late.set()
            process.kill()

        timer = threading.Timer(timeout, stop)
        timer.start()
        try:
            assert process.stderr is not None
            for line in process.stderr:
                lines.append(line.strip())
                if line.startswith("I: "):
                    step = line[3:].strip().rstrip(".")
                    done = sum(each.startswith("I: ") for each in lines)
                    watch(Event(f"building the root with Slurm {version}: {step}", min(done, STEPS), STEPS))
        except BaseException:
            process.kill()
            raise
        finally:
            timer.cancel()
    if late.is_set():
        raise _failed(version, f"it took longer than {timeout:.0f} s", "check the network, then run the command again")
    if process.returncode:
        raise _failed(version, _reason(lines), "check the network and the sources of apt, then run the command again")


def _reason(lines: list[str]) -> str:
    """Return the most telling line of the builder's output: apt's error, else its last line."""
    plain = [line for line in lines if line]
    for line, below in zip(plain, [*plain[1:], ""], strict=True):
        if line.startswith("Err:"):  # what failed; the reason is on the next line
            return re.sub(r"^Err:\S* *", "", f"{line}: {below}" if below else line)
        if line.startswith("E: ") and "apt-get" not in line:
            return line.removeprefix("E: ")
    return plain[-1] if plain else "no error message"


def _check_disk(version: str) -> None:
    free = shutil.disk_usage(folder()).free // MB
    if free < DISK_NEEDED_MB:
        raise RefusedError(
            f"the root with Slurm {version} needs {DISK_NEEDED_MB} MB of disk space, but {folder()} has only {free} MB",
            code="lab-disk-low",
            hint="free some space, or choose another disk, for example: `YURT_LAB_ROOTS=/big/disk yurt lab up`",
        )


def _failed(version: str, why: str, hint: str) -> RefusedError:
    return RefusedError(f"the root with Slurm {version} could not be built: {why}", code="lab-root-failed", hint=hint)
