"""The Debian packages a lab is built from, and how to install them without starting a service."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

PACKAGES: dict[str, tuple[str, ...]] = {
    "slurmctld": ("slurmctld",),
    "slurmd": ("slurmd",),
    "slurmdbd": ("slurmdbd",),
    "slurm-client": (),
    "slurm-wlm-basic-plugins": (),
    "libpam-slurm-adopt": (),
    "munge": ("munge",),
    "mariadb-server": ("mariadb",),
    "openssh-server": ("ssh",),
    "openssh-client": (),
    "environment-modules": (),
    "iproute2": (),
    "nftables": ("nftables",),
    "e2fsprogs": (),
    "procps": (),
    "python3": (),
    "git": (),
    "rsync": ("rsync",),
    "unison": (),
    "zstd": (),
    "lz4": (),
    "tmux": (),
}
"""Each package of the lab with the services it would switch on at boot."""

POLICY = Path("/usr/sbin/policy-rc.d")
MARK = "# yurt: no service starts while packages are installed"

Say = Callable[[str], None]


class InstallError(Exception):
    """The package manager failed; the text is its own last words."""


def missing(names: Sequence[str] = tuple(PACKAGES)) -> list[str]:
    """Which of these packages are not installed. Needs neither root nor network."""
    if not shutil.which("dpkg-query"):
        return list(names)
    answer = subprocess.run(
        ["dpkg-query", "-W", "-f", "${Package} ${db:Status-Status}\n", *names],
        capture_output=True,
        text=True,
        check=False,
    )
    installed = {line.split()[0] for line in answer.stdout.splitlines() if line.endswith(" installed")}
    return [name for name in names if name not in installed]


def install(names: Sequence[str], say: Say = lambda _text: None) -> None:
    """Install packages as root. No service of theirs is started, now or at the next boot.

    A service that was there before is left exactly as it was. Raises InstallError.
    """
    services = [service for name in missing(names) for service in PACKAGES.get(name, ())]
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C.UTF-8"}
    with services_held_back() as prefix:
        say("apt-get update")
        _apt([*prefix, "apt-get", "-qq", "update"], environment)
        say("apt-get install " + " ".join(names))
        command = ["apt-get", "-qq", "-y", "--no-install-recommends", "install", *names]
        _apt([*prefix, *command], environment)
    for service in services:
        _switch_off_at_boot(service)
    if services:
        say("installed but not started, and off at boot: " + ", ".join(services))


@contextmanager
def services_held_back() -> Iterator[list[str]]:
    """While this is open, no package script may start a service; yields a command prefix.

    Debian's scripts ask /usr/sbin/policy-rc.d. Where there is none, one is put there and taken
    away again (a leftover of a killed install carries MARK and is recognised). Where the
    administrator has one, it is covered by a bind mount that only the package manager sees.
    """
    text = f"#!/bin/sh\n{MARK}\nexit 101\n"
    if POLICY.exists() and MARK not in POLICY.read_text(errors="replace"):
        cover = Path("/run/yurt-policy-rc.d")
        _write_program(cover, text)
        script = 'mount --bind "$1" "$2" && shift 2 && exec "$@"'
        prefix = ["unshare", "--mount", "sh", "-c", script, "sh", str(cover), str(POLICY)]
        try:
            yield prefix
        finally:
            cover.unlink(missing_ok=True)
    else:
        _write_program(POLICY, text)
        try:
            yield []
        finally:
            POLICY.unlink(missing_ok=True)


def _write_program(path: Path, text: str) -> None:
    aside = path.with_name(path.name + f".{os.getpid()}")
    aside.write_text(text)
    aside.chmod(0o755)
    aside.rename(path)


def _apt(argv: list[str], environment: dict[str, str]) -> None:
    done = subprocess.run(argv, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode:
        words = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
        raise InstallError(" ".join(words[-3:]) or f"exit code {done.returncode}")


def _switch_off_at_boot(service: str) -> None:
    for argv in (["systemctl", "disable", service], ["update-rc.d", service, "disable"]):
        if shutil.which(argv[0]):
            subprocess.run(argv, capture_output=True, check=False)
