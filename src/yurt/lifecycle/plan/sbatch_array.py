"""Turns `#SBATCH --array` of a script into a sweep with one task for each index, and names the run. Pure."""

from __future__ import annotations

import re

import msgspec

from yurt.backends.slurm.options import Script
from yurt.errors import UserError
from yurt.lifecycle.plan.request import Request
from yurt.model import tasks
from yurt.model.grid import LIMIT
from yurt.model.params import ARRAY_INDEX

_ARRAY = r"(?a)\d+(?:-\d+(?::0*[1-9]\d*)?)?(?:,\d+(?:-\d+(?::0*[1-9]\d*)?)?)*(?:%0*[1-9]\d*)?"
_LARGEST = 4_000_001
"""Slurm's limit: indices are smaller."""


def applied(request: Request, script: Script) -> Request:
    """Return the request with the name and the array of the script. UserError if its array is invalid."""
    name = request.name or script.options.get("job-name") or ""
    request = msgspec.structs.replace(request, name=name)
    if "array" not in script.options:
        return request
    at, text = script.at["array"], script.options["array"] or ""
    if request.sets:
        raise UserError(
            f"{at}: `#SBATCH --array` cannot be combined with another sweep",
            code="usage",
            hint="remove that line, or leave out `--grid`, `--zip`, `--config` and `--spec`",
        )
    ranges, _, most = text.partition("%")
    bounds = [int(number) for number in re.findall(r"\d+", ranges)]
    if not re.fullmatch(_ARRAY, text) or max(bounds) >= _LARGEST or not (count := tasks.count(ranges)):
        raise UserError(
            f"{at}: --array must be a list of indices such as 0-9, 1,3,7 or 0-99%10, not '{text}'",
            code="usage",
            hint="correct that line, for example: `#SBATCH --array=0-9`",
        )
    if count > LIMIT:
        raise UserError(
            f"{at}: --array has {count:,} indices; the maximum is {LIMIT:,}",
            code="usage",
            hint="submit several smaller arrays",
        )
    return msgspec.structs.replace(
        request,
        sets=[{ARRAY_INDEX: number} for number in sorted(set(tasks.numbers(ranges)))],
        pass_sets=False,
        array=ranges,
        parallel=request.parallel or (int(most) if most else None),
    )
