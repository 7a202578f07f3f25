"""`yurt.params`: the parameters a run was given."""

import json
import os
from typing import Any, Dict


def params() -> Dict[str, Any]:
    """The parameters of this run; numbers are numbers. Outside of a run there are none."""
    file = os.environ.get("YURT_PARAMS")
    if not file:
        return {}
    with open(file, encoding="utf-8") as stream:
        return dict(json.load(stream))
