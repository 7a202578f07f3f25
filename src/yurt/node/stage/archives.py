"""Unpacks archives into a folder."""

import os
import shutil
import subprocess
import zipfile

from yurt.node.files import NodeError
from yurt.node.stage.words import one_line

TAR = (".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tbz2", ".tar.xz", ".txz", ".tar.zst", ".tzst")
ZIP = (".zip",)

DAMAGED = ("unexpected eof", "not look like a tar", "not in gzip format", "crc", "corrupt", "invalid", "premature")


HARMLESS = ("tar: Removing leading", "tar: Exiting with failure", "tar: Ignoring unknown", "tar: A lone zero block")
"""Messages of tar that say nothing about why it failed."""


def is_archive(path: str) -> bool:
    return path.lower().endswith(TAR + ZIP)


def unpack(path: str, folder: str) -> None:
    """Unpack an archive into an empty folder. NodeError says why it cannot be; OSError, such as a full disk.

    Names and links in it cannot lead out of the folder: tar and zipfile see to that.
    """
    if path.lower().endswith(ZIP):
        _unzip(path, folder)
    else:
        _untar(path, folder)


def _unzip(path: str, folder: str) -> None:
    try:
        with zipfile.ZipFile(path) as archive:
            for name in archive.namelist():
                if ".." in name.replace("\\", "/").split("/"):  # as tar does
                    raise NodeError(
                        "archive %s cannot be unpacked: %s leads out of its folder" % (path, one_line(name))
                    )
            archive.extractall(folder)
    except (zipfile.BadZipFile, EOFError, NotImplementedError, RuntimeError) as error:
        raise NodeError("%s is damaged, or not a zip archive that Python can read: %s" % (path, error)) from None


def _untar(path: str, folder: str) -> None:
    words = ["tar", "-x", "-f", path, "-C", folder, "--no-same-owner"]
    if path.lower().endswith((".zst", ".tzst")):
        if not shutil.which("zstd"):
            raise NodeError("%s cannot be unpacked: this node has no program zstd" % path)
        words[1:1] = ["-I", "zstd"]
    with open(path, "rb"):
        pass  # tar's own message about a missing file is longer
    process = subprocess.Popen(
        words,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env={**os.environ, "LC_ALL": "C"},
    )
    try:
        said = process.communicate()[1].decode("utf-8", "replace")
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
    if process.returncode == 0:
        return
    if "No space left" in said or "quota exceeded" in said:
        raise OSError(28, os.strerror(28), folder)
    lines = [line for line in said.splitlines() if line.strip()]
    first = next((line for line in lines if not line.startswith(HARMLESS) and not _is_warning(line)), "tar failed")
    if any(word in said.lower() for word in DAMAGED):
        raise NodeError("archive %s is damaged: %s" % (path, one_line(first)))
    raise NodeError("archive %s cannot be unpacked: %s" % (path, one_line(first)))


def _is_warning(line: str) -> bool:
    """Return whether a line of tar is a warning, after which it continues."""
    return "time stamp" in line or "implausibly old" in line or ": Warning:" in line
