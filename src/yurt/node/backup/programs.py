"""The programs that packs are made with: GNU tar, and zstd, lz4 or gzip, whichever the node has."""

import os
import shutil
import subprocess
from typing import IO, Dict, List, NamedTuple, Optional

from yurt.node.backup.errors import BackupError

MISSING = "backups need GNU tar, and zstd, lz4 or gzip: %s not found on this machine"


class Compression(NamedTuple):
    """One way to compress a pack; both commands work from stdin to stdout."""

    program: str
    suffix: str
    compress: List[str]
    expand: List[str]


FAST = ["-1"] if (os.cpu_count() or 1) > 3 else ["--fast=2"]
"""With few processors, zstd at -1 is slower than tar; with more it is not, and packs are smaller."""

KNOWN = (
    Compression("zstd", ".tar.zst", ["-q", "-T0", *FAST, "-c"], ["-q", "-d", "-c"]),
    Compression("lz4", ".tar.lz4", ["-q", "-z", "-1", "-c"], ["-q", "-d", "-c"]),
    Compression("gzip", ".tar.gz", ["-q", "-1", "-c"], ["-q", "-d", "-c"]),
)


def choose(name: str) -> Compression:
    """Return the compression of this name; for `auto` the first whose program exists."""
    for each in KNOWN:
        if name in ("auto", each.program) and shutil.which(each.program):
            return each
    raise BackupError(MISSING % ("a compression program was" if name == "auto" else "%s was" % name))


def of_pack(name: str) -> Compression:
    """Return the compression of a pack, by its name."""
    for each in KNOWN:
        if name.endswith(each.suffix):
            if shutil.which(each.program):
                return each
            raise BackupError("reading %s needs %s, which was not found on this machine" % (name, each.program))
    raise BackupError("the pack %s has an unknown compression" % name)


ACLS = "--acls"
_gnu: Dict[str, List[str]] = {}


def tar(*, acls: bool = True) -> List[str]:
    """Return the command of GNU tar, with its options for attributes and access lists if it has them."""
    path = os.environ.get("PATH", "")
    if path not in _gnu:
        _gnu[path] = _find_tar()
    return [word for word in _gnu[path] if acls or word != ACLS]


def _find_tar() -> List[str]:
    for name in ("tar", "gtar"):
        try:
            done = subprocess.run(
                [name, "--help"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False, env=environment()
            )
        except OSError:
            continue
        if b"--no-unquote" in done.stdout:
            attributes = ["--xattrs", "--xattrs-include=user.*"] if b"--xattrs-include" in done.stdout else []
            return [name, *attributes, *([ACLS] if ACLS.encode() in done.stdout else [])]
    raise BackupError(MISSING % "GNU tar was")


def environment() -> Dict[str, str]:
    """Return the environment of these programs, without variables that change what they do."""
    return {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C"}


def start(
    command: List[str], stdin: Optional[int], stdout: int, stderr: IO[bytes], folder: Optional[bytes] = None
) -> "subprocess.Popen[bytes]":
    """Start one program of a pipe."""
    try:
        return subprocess.Popen(
            command, stdin=stdin, stdout=stdout, stderr=stderr, cwd=folder, env=environment(), bufsize=0
        )
    except FileNotFoundError:
        raise BackupError(MISSING % ("%s was" % command[0])) from None


def stop(processes: "List[subprocess.Popen[bytes]]") -> None:
    """End programs that still run, and close their pipes."""
    for each in processes:
        for pipe in (each.stdin, each.stdout):
            if pipe is not None:
                pipe.close()
        if each.poll() is None:
            each.kill()
        each.wait()


def said(stderr: IO[bytes]) -> str:
    """Return the last line that a program wrote to stderr."""
    stderr.seek(0)
    lines = [line.strip() for line in stderr.read().decode("utf-8", "backslashreplace").splitlines() if line.strip()]
    lines = [line for line in lines if "Exiting with failure status" not in line] or lines
    return lines[-1][:300] if lines else "it gave no reason"
