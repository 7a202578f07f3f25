"""Names of temporary files that say which process made them, so that leftovers of dead ones can be removed."""

import hashlib
import os
import random
import re
import socket

FORM = re.compile(r"yurt-([0-9a-f]{8})-([0-9a-f]{8})-(\d+)-(\d+)-[0-9a-f]{8}")


def own() -> str:
    """Return a new name, without dots, that names this process."""
    random_part = "%08x" % random.SystemRandom().getrandbits(32)
    return "yurt-%s-%s-%d-%d-%s" % (_machine(), _boot(), os.getpid(), _started(os.getpid()), random_part)


def dead(name: str) -> bool:
    """Return whether a name was made by a process on this machine that no longer runs. False if it is uncertain."""
    found = FORM.fullmatch(name)
    if not found or found.group(1) != _machine():
        return False
    if found.group(2) != _boot():
        return True
    started = _started(int(found.group(3)))
    return started == 0 or started != int(found.group(4))


def _machine() -> str:
    """Return a checksum of the host name and the namespace of process numbers: both decide whom a number means."""
    try:
        space = os.readlink("/proc/self/ns/pid")
    except OSError:
        space = ""
    return _short(socket.gethostname() + space)


def _boot() -> str:
    try:
        with open("/proc/sys/kernel/random/boot_id") as stream:
            return _short(stream.read())
    except OSError:
        return _short("")


def _started(number: int) -> int:
    """Return when a process started, in ticks since boot; 0 if it does not run, 1 if this system does not tell."""
    try:
        with open("/proc/%d/stat" % number, "rb") as stream:
            fields = stream.read().rpartition(b")")[2].split()
        return 0 if fields[0] in (b"Z", b"X") else int(fields[19])
    except OSError:
        pass
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return 0
    except PermissionError:
        pass
    return 1


def _short(value: str) -> str:
    return hashlib.sha256(value.encode("utf-8", "surrogateescape")).hexdigest()[:8]
