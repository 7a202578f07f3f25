"""`yurt.params`: the parameters of a run."""

import json
import os
from typing import Any, Dict


def params() -> Dict[str, Any]:
    """Return the parameters of this run with their types; empty outside of a run."""
    file = os.environ.get("YURT_PARAMS")
    if not file:
        return {}
    with open(file, encoding="utf-8") as stream:
        return dict(json.load(stream))
