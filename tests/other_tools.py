"""Folders for PATH with tools that are not GNU's: busybox, toybox, and programs that behave like those of BSD."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

COMMON = ("bash", "git", "gzip", "perl", "python3")
"""Programs that do not belong to a set of tools; macOS has them too."""

SHARED = (
    *("awk", "cat", "chmod", "cmp", "cut", "dd", "dirname", "env", "expr", "grep", "id", "kill", "ln", "ls"),
    *("mkdir", "mktemp", "printf", "pwd", "rm", "rmdir", "seq", "sleep", "sort", "tail", "touch", "tr", "true"),
    *("uname", "uniq", "xargs", "readlink"),
)
"""Tools that yurt uses as GNU and BSD both allow. macOS has no timeout, setsid, sha256sum and getent."""

REFUSED = {
    "mv": "-T|--?*",
    "cp": "-*T*|--?*",
    "find": "-printf|/0*",
    "stat": "-c*|--?*",
    "sed": r"-i*|-r*|--?*|*'\|'*",
    "date": "-d*|--?*|*%N*",
    "du": "-b*|--?*",
}
"""Arguments that GNU knows and BSD does not, as patterns of sh."""

PS = """\
#!/usr/bin/env python3
import os, sys, time
proc, pid = os.environ["REAL_PROC"], sys.argv[-1]
assert sys.argv[1:] in (["-o", "lstart=", "-p", pid], ["-o", "stat=", "-o", "lstart=", "-p", pid]), sys.argv
try:
    fields = open(f"{proc}/{pid}/stat").read().rpartition(")")[2].split()
except OSError:
    sys.exit(1)
boot = next(int(line.split()[1]) for line in open(f"{proc}/stat") if line.startswith("btime"))
started = time.asctime(time.localtime(boot + int(fields[19]) // os.sysconf("SC_CLK_TCK")))
print(f"{fields[0]}    {started}    " if "stat=" in sys.argv else f"{started}    ")
"""


def links(folder: Path, tool: str) -> Path:
    """Return a folder with only the tools of busybox or toybox, and the common programs."""
    folder.mkdir()
    binary = shutil.which(tool)
    assert binary is not None, f"install the Debian package {tool}"
    listed = subprocess.run(
        [binary, *(["--list"] if tool == "busybox" else [])], capture_output=True, text=True, check=True
    )
    for name in listed.stdout.split():
        (folder / name).symlink_to(binary)
    _add(folder, *COMMON, tar="bsdtar")
    if tool == "toybox":
        _add(folder, sh="dash", awk="busybox", dd="busybox", expr="busybox", tr="busybox")
    return folder


def bsd(folder: Path) -> Path:
    """Return a folder with tools that refuse options of GNU; `head` reads ahead, `wc` pads, `ps` needs $REAL_PROC."""
    folder.mkdir()
    _add(folder, *COMMON, *SHARED, tar="bsdtar", sh="dash", head="busybox")
    for name, pattern in REFUSED.items():
        refuse = f'for each; do case $each in {pattern}) echo "{name}: illegal option $each" >&2; exit 64 ;; esac; done'
        _write(folder, name, f'#!/bin/sh\n{refuse}\nexec {shutil.which(name)} "$@"\n')
    _write(folder, "wc", f'#!/bin/sh\nset -- "$({shutil.which("wc")} "$@")"\nprintf "%8s\\n" "$1"\n')
    _write(folder, "ps", PS)
    _write(folder, "sysctl", "#!/bin/sh\necho 7C1B5DB4-0000-4000-8000-2B1F3E5A9D77\n")
    return folder


def _add(folder: Path, *names: str, **others: str) -> None:
    for name, program in {**dict(zip(names, names, strict=True)), **others}.items():
        found = shutil.which(program)
        assert found is not None, f"{program} is not installed"
        (folder / name).unlink(missing_ok=True)
        (folder / name).symlink_to(found)


def _write(folder: Path, name: str, text: str) -> None:
    program = folder / f"bsd-{name}"
    program.write_text(text)
    program.chmod(0o755)
    (folder / name).symlink_to(program.name)
