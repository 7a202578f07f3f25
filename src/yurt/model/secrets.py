"""Secrets of a run: valid names, and splitting of a value into two shares. Pure.

One share is stored in the run folder, the other in the job's environment. Each alone is random noise; the job adds them
byte by byte (backends/job/secrets.sh).
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping

import msgspec

LARGEST = 1 << 16
"""Maximum bytes of one value; its share must fit into a variable, which Linux limits to 128 KiB."""

ALL_TOGETHER = 1 << 18
"""Maximum bytes of all values of a run."""

BLOCK = 48
"""The length of a share is a multiple of this, which hides the length of the value. A multiple of base64 groups."""

CHECK = 8
"""Minimum number of NUL bytes after a value; the sum of two shares that do not match does not end with them."""

SPECIAL = re.compile(
    r"(YURT|yurt)_.*|LD_.*|DYLD_.*|SLURM_.*|SBATCH_.*|SRUN_.*|BASH.*|LC_.*|PYTHON(HOME|PATH|STARTUP)?|CUDA_VISIBLE_DEVICES"
    r"|PATH|HOME|SHELL|USER|LOGNAME|PWD|OLDPWD|TMPDIR|TERM|LANG|LANGUAGE|TZ|IFS|ENV|OPTIND|OPTARG|PPID|UID|EUID|_"
    r"|PS[0-9]|SHELLOPTS|SHLVL|GROUPS|RANDOM|SRANDOM|SECONDS|LINENO|EPOCH.*|FUNCNAME|DIRSTACK|HISTCMD|CDPATH|POSIXLY_CORRECT"
)
"""Variables that the system, the shell, Slurm or yurt use."""


class Shares(msgspec.Struct, frozen=True):
    """The two halves of a run's secrets for one submission."""

    folder: bytes
    """A line for each secret: its name and its first share."""
    environment: bytes
    """The same with the second share."""

    def __repr__(self) -> str:  # both together are the secrets
        return "Shares(…)"


def check_name(name: str) -> None:
    """ValueError, with the reason, if the name is not valid for a secret."""
    if "=" in name:  # what follows is probably the value, which must not be printed
        raise ValueError(f"'{name.partition('=')[0]}' is followed by a value; give only the name")
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,99}", name):
        raise ValueError(f"'{name}' is not a valid variable name")
    if SPECIAL.fullmatch(name):
        raise ValueError(f"'{name}' is reserved for the system, the shell, Slurm or yurt")


def check_values(values: Mapping[str, bytes]) -> None:
    """ValueError, with the reason and never the value, if a value cannot be passed to a run."""
    for name, value in values.items():
        if b"\0" in value:
            raise ValueError(f"the value of secret '{name}' contains a NUL byte, which variables cannot contain")
        if len(value) > LARGEST:
            raise ValueError(f"the value of secret '{name}' is {len(value)} bytes; the maximum is {LARGEST}")
    total = sum(len(value) for value in values.values())
    if total > ALL_TOGETHER:
        raise ValueError(f"the secrets are {total} bytes in total; the maximum is {ALL_TOGETHER}")


def split(value: bytes, random: Callable[[int], bytes]) -> tuple[bytes, bytes]:
    """Split a value into two shares that are each random; `random` returns that many random bytes."""
    padded = value + bytes(CHECK + -(len(value) + CHECK) % BLOCK)
    pad = random(len(padded))
    return pad, bytes((each - under) % 256 for each, under in zip(padded, pad, strict=True))


def shares(values: Mapping[str, bytes], random: Callable[[int], bytes]) -> Shares:
    """Return both shares of all secrets of a run; every call makes new random shares."""
    folder, environment = [], []
    for name, value in values.items():
        first, second = split(value, random)
        folder.append(name.encode() + b" " + base64.b64encode(first) + b"\n")
        environment.append(name.encode() + b" " + base64.b64encode(second) + b"\n")
    return Shares(b"".join(folder), b"".join(environment))
