"""Fills a fresh folder with the first content of a workspace: a git repository, a folder, a snapshot or an archive."""

import os
import re
import shutil
import subprocess
from typing import Dict, List, Optional, Set

from yurt.node.dev.config import Source
from yurt.node.files import NodeError, remove

UNPACKERS = {".tar.lz4": "lz4", ".tar.zst": "zstd", ".tar.gz": "gzip", ".tgz": "gzip", ".tar": ""}
USUAL = ("work",)
"""The top folder in an archive that stands for the workspace."""

ABOVE = ("scratch", "local", "localscratch", "lscratch", "raid")
"""Folders above it, in an archive that was made from an absolute path."""

TAR_ENDS = ("tar: Exiting with failure status", "tar: Error is not recoverable", "tar: Child returned status")
"""The last lines of a tar that failed, which do not say why."""


def fill(source: Source, target: str, name: str, run_folder: str) -> None:
    """Put the content of a source into an existing empty folder. Raises NodeError; then the caller removes it.

    `name` is the name of the workspace: an archive may hold it as its only top folder.
    """
    if source.kind == "git":
        _clone(source.value, target)
    elif source.kind == "folder":
        _copy(os.path.expanduser(source.value), target)
    elif source.kind == "project":
        _copy_snapshot(source.value or os.path.join(run_folder, "work"), target)
    elif source.kind == "archive":
        _unpack(os.path.expanduser(source.value), target, name)


def discard(source: Source) -> None:
    """Remove an archive that was uploaded for this workspace, and its folder."""
    if source.uploaded:
        remove(source.value)
        try:
            os.rmdir(os.path.dirname(source.value))
        except OSError:
            pass  # it is not empty, or the disk is full


def hide_password(text: str) -> str:
    """Return a text without user names and passwords in addresses."""
    return re.sub(r"(\w+://)[^/@\s]*@", r"\1", text)


def _run(words: List[str], what: str, environment: Optional[Dict[str, str]] = None) -> None:
    try:
        done = subprocess.run(
            words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env=environment,
            check=False,
        )
    except OSError as error:
        raise NodeError("%s: %s: %s" % (what, words[0], error.strerror)) from None
    if done.returncode:
        raise NodeError("%s: %s" % (what, _reason(done.stderr) or "exit code %d" % done.returncode))


def _reason(stderr: bytes) -> str:
    lines = [each.strip() for each in hide_password(stderr.decode("utf-8", "replace")).splitlines() if each.strip()]
    lines = [each for each in lines if not each.startswith(TAR_ENDS)]
    return next((each for each in lines if each.startswith("fatal:")), lines[-1] if lines else "")


def _clone(url: str, target: str) -> None:
    environment = dict(os.environ, GIT_TERMINAL_PROMPT="0", LC_ALL="C")
    environment.setdefault("GIT_SSH_COMMAND", "ssh -o BatchMode=yes")
    environment.pop("GIT_ASKPASS", None)
    environment.pop("SSH_ASKPASS", None)
    what = "cannot clone %s" % hide_password(url)
    _run(["git", "clone", "--quiet", "--recurse-submodules", "--", url, target], what, environment)


def _copy(folder: str, target: str) -> None:
    if not os.path.isdir(folder):
        raise NodeError("cannot copy the folder %s: it does not exist on this node" % folder)
    _run(["cp", "-a", os.path.join(folder, "."), target], "cannot copy the folder %s" % folder)


def _copy_snapshot(folder: str, target: str) -> None:
    """Copy the code of the run. It is read-only, and may be links to a checkout: the copy is neither."""
    _copy(folder, target)
    for top, folders, files in os.walk(target):
        for name in list(folders) + files:
            path = os.path.join(top, name)
            if os.path.islink(path):
                code = os.readlink(path)
                if not os.path.isabs(code) or "/snapshots/" not in code:
                    continue
                os.unlink(path)
                _run(["cp", "-a", code, path], "cannot copy %s" % code)
            if not os.path.islink(path):
                os.chmod(path, os.stat(path).st_mode | 0o200)
    os.chmod(target, 0o700)


def _unpack(archive: str, target: str, name: str) -> None:
    what = "cannot unpack %s" % archive
    ending = next((each for each in UNPACKERS if archive.endswith(each)), None)
    if ending is None:
        raise NodeError("%s: its name ends in none of %s" % (what, " ".join(sorted(UNPACKERS))))
    if not os.path.isfile(archive):
        raise NodeError("%s: it does not exist on this node" % what)
    program = UNPACKERS[ending]
    if program and shutil.which(program) is None:
        raise NodeError("%s: command %s not found on this node" % (what, program))
    words = ["tar", "-x", "-p", "--no-same-owner", "-C", target, "-f"]
    if not program:
        _run([*words, archive], what)
    else:
        with open(archive, "rb") as stream:
            first = subprocess.Popen(
                [program, "-d", "-c"], stdin=stream, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
            )
            second = subprocess.Popen(
                [*words, "-"], stdin=first.stdout, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
            )
        if first.stdout:
            first.stdout.close()
        _out, errors = second.communicate()
        if second.returncode:
            raise NodeError("%s: %s" % (what, _reason(errors)))
        if first.wait():
            raise NodeError("%s: %s failed with exit code %d" % (what, program, first.returncode))
    _lift(target, {*USUAL, name, os.path.basename(archive)[: -len(ending)]})


def _lift(target: str, names: Set[str]) -> None:
    """If the archive holds only the workspace's folder, make that folder's content the content of `target`."""
    inner = target
    while True:
        entries = os.listdir(inner)
        below = os.path.join(inner, entries[0]) if len(entries) == 1 else ""
        if not below or os.path.islink(below) or not os.path.isdir(below):
            return
        inner = below
        if entries[0] in names:
            break
        if entries[0] not in ABOVE and os.path.basename(os.path.dirname(inner)) not in ABOVE:
            return
    aside = target + ".lifted"
    os.rename(inner, aside)
    shutil.rmtree(target)
    os.rename(aside, target)
