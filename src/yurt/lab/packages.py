"""The Debian packages a lab needs, and their installation without starting any service."""

from __future__ import annotations

import fcntl
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
    "python3-venv": (),
    "git": (),
    "rsync": ("rsync",),
    "unison": (),
    "zstd": (),
    "lz4": (),
    "tmux": (),
}
"""Each package of the lab with the services it would enable at boot."""

POLICY = Path("/usr/sbin/policy-rc.d")
COVER = Path("/run/yurt-policy-rc.d")
LOCK = Path("/run/yurt-packages.lock")
MARK = "# yurt: no service starts while packages are installed"

Report = Callable[[str], None]


class InstallError(Exception):
    """The package manager failed; the text is the end of its output."""


def missing(names: Sequence[str] = tuple(PACKAGES)) -> list[str]:
    """Return the packages that are not installed. Needs neither root nor network."""
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


def install(names: Sequence[str], report: Report = lambda _text: None) -> None:
    """Install packages as root. None of their services is started, now or at the next boot.

    Services that were installed before are not changed. Raises InstallError.
    """
    services = [service for name in missing(names) for service in PACKAGES.get(name, ())]
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C.UTF-8"}
    with services_held_back() as prefix:
        report("apt-get update")
        _apt([*prefix, "apt-get", "-qq", "update"], environment)
        report("apt-get install " + " ".join(names))
        command = ["apt-get", "-qq", "-y", "--no-install-recommends", "install", *names]
        _apt([*prefix, *command], environment)
    for service in services:
        _disable_at_boot(service)
    if services:
        report("installed, but not started and disabled at boot: " + ", ".join(services))


@contextmanager
def services_held_back() -> Iterator[list[str]]:
    """Prevent package scripts from starting services inside this context; yields a command prefix.

    Debian's package scripts run /usr/sbin/policy-rc.d. If there is none, one is created and removed
    afterwards (a leftover of a killed install contains MARK and is recognised). If the administrator
    has one, it is hidden by a bind mount that only the package manager sees. A second installation
    waits for the first, which would otherwise remove the file that both need.
    """
    text = f"#!/bin/sh\n{MARK}\nexit 101\n"
    with LOCK.open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if POLICY.exists() and MARK not in POLICY.read_text(errors="replace"):
            script = 'mount --bind "$1" "$2" && shift 2 && exec "$@"'
            program, prefix = COVER, ["unshare", "--mount", "sh", "-c", script, "sh", str(COVER), str(POLICY)]
        else:
            program, prefix = POLICY, []
        _write_program(program, text)
        try:
            yield prefix
        finally:
            program.unlink(missing_ok=True)


def _write_program(path: Path, text: str) -> None:
    aside = path.with_name(path.name + f".{os.getpid()}")
    aside.write_text(text)
    aside.chmod(0o755)
    aside.rename(path)


def _apt(argv: list[str], environment: dict[str, str]) -> None:
    done = subprocess.run(argv, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode:
        lines = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
        raise InstallError(" ".join(lines[-3:]) or f"exit code {done.returncode}")


def _disable_at_boot(service: str) -> None:
    for argv in (["systemctl", "disable", service], ["update-rc.d", service, "disable"]):
        if shutil.which(argv[0]):
            subprocess.run(argv, capture_output=True, check=False)
