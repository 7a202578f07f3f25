"""Secrets of a run: which names they may have, and how a value is split into two shares. Pure.

One share goes to the run folder, the other into the job's environment. Each alone is random noise; the
job adds them, byte by byte (backends/job/secrets.sh).
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping

import msgspec

LARGEST = 1 << 16
"""Bytes of one value; its share must fit a variable, of which Linux passes 128 KiB."""

ALL_TOGETHER = 1 << 18

BLOCK = 48
"""A share is a multiple of this long: it tells little of how long the value is. Whole groups of base64."""

CHECK = 8
"""NUL bytes that follow a value at least: shares that do not belong together do not end so."""

PREFIX = "YURT_SHARE_"

SPECIAL = re.compile(
    r"(YURT|yurt)_.*|LD_.*|DYLD_.*|SLURM_.*|SBATCH_.*|SRUN_.*|BASH.*|LC_.*|PYTHON(HOME|PATH|STARTUP)?|CUDA_VISIBLE_DEVICES"
    r"|PATH|HOME|SHELL|USER|LOGNAME|PWD|OLDPWD|TMPDIR|TERM|LANG|LANGUAGE|TZ|IFS|ENV|OPTIND|OPTARG|PPID|UID|EUID|_"
    r"|PS[0-9]|SHELLOPTS|SHLVL|GROUPS|RANDOM|SRANDOM|SECONDS|LINENO|EPOCH.*|FUNCNAME|DIRSTACK|HISTCMD|CDPATH|POSIXLY_CORRECT"
)
"""Variables that mean something to the system, the shell, Slurm or yurt."""


class Shares(msgspec.Struct, frozen=True):
    """The two halves of a run's secrets, as they travel with one submission."""

    folder: bytes
    """A line for each secret: its name and its share."""
    environment: bytes
    """The same, of the other share."""

    def __repr__(self) -> str:  # both together are the secrets
        return "Shares(…)"


def check_name(name: str) -> None:
    """ValueError, with the reason, for what cannot be the name of a secret."""
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,99}", name):
        raise ValueError(f"'{name}' is no name for a variable")
    if SPECIAL.fullmatch(name):
        raise ValueError(f"'{name}' means something to the system, to the shell, to Slurm or to yurt")


def check_values(values: Mapping[str, bytes]) -> None:
    """ValueError, with the reason and never the value, for what cannot be handed over."""
    for name, value in values.items():
        if b"\0" in value:
            raise ValueError(f"the value of {name} holds a NUL byte, which no variable can hold")
        if len(value) > LARGEST:
            raise ValueError(f"the value of {name} has {len(value)} bytes; at most {LARGEST} can be handed over")
    total = sum(len(value) for value in values.values())
    if total > ALL_TOGETHER:
        raise ValueError(f"the secrets have {total} bytes together; at most {ALL_TOGETHER} can be handed over")


def split(value: bytes, random: Callable[[int], bytes]) -> tuple[bytes, bytes]:
    """Two shares of a value, each of them random; `random` gives so many random bytes."""
    whole = value + bytes(CHECK + -(len(value) + CHECK) % BLOCK)
    pad = random(len(whole))
    return pad, bytes((each - under) % 256 for each, under in zip(whole, pad, strict=True))


def shares(values: Mapping[str, bytes], random: Callable[[int], bytes]) -> Shares:
    """Both shares of all secrets of a run, anew at each call."""
    folder, environment = [], []
    for name, value in values.items():
        first, second = split(value, random)
        folder.append(name.encode() + b" " + base64.b64encode(first) + b"\n")
        environment.append(name.encode() + b" " + base64.b64encode(second) + b"\n")
    return Shares(b"".join(folder), b"".join(environment))
