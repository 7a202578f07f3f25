"""The log files that a script names with `#SBATCH --output` and `--error`, as lines of `data`. Pure."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping

from yurt.model import layout

_PATTERN = r"%(?P<width>\d*)(?P<letter>[A-Za-z%])"

_JOB = "${SLURM_JOB_ID:-$YURT_RUN_ID}"
_TEXTS = {
    "A": f"${{SLURM_ARRAY_JOB_ID:-{_JOB}}}",
    "a": "${SLURM_ARRAY_TASK_ID:-4294967294}",  # Slurm's number for a job that is not in an array
    "j": _JOB,
    "J": _JOB,
    "N": "$(uname -n | cut -d . -f 1)",
    "n": "0",
    "s": "batch",
    "t": "0",
    "u": "$(id -un)",
}
"""Shell texts for the patterns of sbatch."""


def lines(logs: Mapping[str, str], name: str) -> list[str]:
    """Return calls of link_log (command.sh). Without --error, standard error goes to the file of --output."""
    files = {"output": layout.OUT_LOG, "error": layout.ERR_LOG}
    found = [f'link_log "$4" {files[option]} {expanded(pattern, name)}' for option, pattern in logs.items()]
    return [*found, "join_streams"] if "output" in logs and "error" not in logs else found


def expanded(pattern: str, name: str) -> str:
    """Return a shell word for a pattern such as logs/%x-%j.out; `name` is the name of the run. As sbatch expands it."""
    parts, at = [], 0
    for found in re.finditer(_PATTERN, pattern):
        parts.append(_quoted(pattern[at : found.start()]))
        at = found.end()
        letter, width = found["letter"], int(found["width"] or 0)
        if letter == "%":
            parts.append("%")
        elif letter == "x":
            parts.append(_quoted(name.replace("/", "_")))
        elif letter not in _TEXTS:
            parts.append(_quoted(found[0]))
        elif width:
            parts.append(f'"$(padded {min(width, 10)} "{_TEXTS[letter]}")"')
        else:
            parts.append(f'"{_TEXTS[letter]}"')
    return "".join([*parts, _quoted(pattern[at:])])


def _quoted(text: str) -> str:
    return shlex.quote(text) if text else ""
