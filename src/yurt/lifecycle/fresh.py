"""Whether a running agent has just refreshed a context, so that a verb need not query the site again."""

from __future__ import annotations

import os
import time

from yurt.config import paths
from yurt.store import Store

FRESH = 10.0
"""Seconds for which the states that a running agent has read are shown without asking the site again."""


def is_fresh(index: Store, context: str) -> bool:
    """Whether the agent has just refreshed a context, after which nothing was saved for it."""
    at = index.refreshed_at(context)
    if at is None or not 0 <= time.time() - at < FRESH or index.outbox(context):
        return False
    if not os.path.exists(f"{paths.data_folder()}/agent/lock"):  # saves the import
        return False
    from yurt.contexts import agent_state as state

    return state.is_running()
