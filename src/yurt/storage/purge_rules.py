"""Which folders sites purge. Read from the index, unless the files that say so have changed. Cheap to import."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from yurt import __version__
from yurt.config import paths

if TYPE_CHECKING:
    from yurt.store import Store
    from yurt.store.site_copies import PurgeRule


def purge_rules(store: Store) -> list[PurgeRule]:
    """Return the purge rules of all contexts, without a query of a site. A context that is invalid has none."""
    stamp = _stamp()
    if not stamp:
        return []  # no contexts but the built-in one
    found = store.purge_rules(stamp)
    if found is None:
        found = _read()
        store.note_purge_rules(stamp, found)
    return found


def _stamp() -> str:
    """Return the state of the configuration: contexts.yaml, and the facts of sites; empty without contexts."""
    home = paths.config_folder()
    try:
        file = os.stat(f"{home}/contexts.yaml")
    except OSError:
        return ""
    try:
        facts = os.stat(f"{home}/facts").st_mtime_ns
    except OSError:
        facts = 0
    return f"{__version__}:{file.st_mtime_ns}:{file.st_size}:{facts}"


def _read() -> list[PurgeRule]:
    from yurt.config import contexts, facts
    from yurt.errors import YurtError
    from yurt.storage.tiers import tiers
    from yurt.store.site_copies import PurgeRule

    try:
        known = contexts.load(contexts.default_file()).contexts.values()
    except YurtError:
        return []
    found = []
    for context in known:
        if not (context.profile or context.tier_purge):
            continue
        try:
            places = tiers(context, facts.last(context))
        except (YurtError, AssertionError):
            continue
        # Also tiers without a rule: one may be a folder in a tier that has one.
        found += [PurgeRule(context.name, each.path, each.purge_days or 0) for each in places if each.path]
    purged = {each.context for each in found if each.days}
    return [each for each in found if each.context in purged]
