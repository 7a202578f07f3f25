"""Installs the Debian packages that the tests need. Without root, prints the command to run."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence

from yurt.lab import packages

FOR_TESTS = (
    "valgrind",
    "mawk",
    "gawk",
    "tcsh",
    "fish",
    "zsh",
    "dbus",
    "gnome-keyring",
    "shellcheck",
    "tmux",
    "systemd",
    "busybox",
    "toybox",
    "libarchive-tools",
    "chromium",
    "mmdebstrap",
    "strace",
    "acl",
)
NEEDED = (*packages.PACKAGES, *FOR_TESTS)


def can_be_root() -> bool:
    """Return whether this process is root or can use sudo without a password."""
    if os.geteuid() == 0:
        return True
    argv = ["sudo", "-n", "true"]
    return shutil.which("sudo") is not None and subprocess.run(argv, capture_output=True, check=False).returncode == 0


def lab_packages_installed() -> bool:
    return not packages.missing()


def as_root(argv: list[str]) -> list[str]:
    return argv if os.geteuid() == 0 else ["sudo", "-n", "--preserve-env=CI,SLOW_TESTS,LAB_SLURM,YURT_TEST_HOME", *argv]


def main(needed: Sequence[str] = NEEDED) -> int:
    missing = packages.missing(needed)
    if not missing:
        print(f"setup: {len(needed)} Debian packages are installed")
        return 0
    if not can_be_root():
        print("setup: Debian packages are missing, and installing them needs root; ask the administrator to run:")
        print("  apt-get install --no-install-recommends " + " ".join(missing))
        return 0
    if os.geteuid() != 0:
        return subprocess.call(as_root([sys.executable, __file__, *needed]))
    try:
        packages.install(missing, lambda text: print(f"setup: {text}", flush=True))
    except packages.InstallError as error:
        print(f"setup: the packages could not be installed: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or NEEDED))
