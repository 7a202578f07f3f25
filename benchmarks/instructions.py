"""Counts the instructions of a command with valgrind. The count does not depend on the machine's load."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping, Sequence


def instructions(argv: Sequence[str], environment: Mapping[str, str] | None = None) -> int:
    """Return the instructions that `argv` executes, after a first run that fills the bytecode cache."""
    own = {**(os.environ if environment is None else environment), "PYTHONHASHSEED": "0"}
    own.pop("PYTHONDONTWRITEBYTECODE", None)
    subprocess.run(argv, env=own, stdin=subprocess.DEVNULL, capture_output=True, check=True)
    valgrind = ["valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"]
    done = subprocess.run(
        [*valgrind, *argv], env=own, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True
    )
    found = re.search(r"I\s+refs:\s+([\d,]+)", done.stderr)
    if found is None:
        raise RuntimeError(f"valgrind printed no instruction count: {done.stderr[-200:]}")
    return int(found.group(1).replace(",", ""))
