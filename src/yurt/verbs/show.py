"""show: everything known of one run; and a plan as one looks at it."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from yurt.errors import YurtError
from yurt.lifecycle.files import metrics
from yurt.lifecycle.files.metrics import Metric
from yurt.lifecycle.refresh import archive
from yurt.lifecycle.refresh.archive import Parts
from yurt.model.run import Run
from yurt.model.verdict import Verdict, verdict_of
from yurt.store import Entry, Mirrored, Store

PATIENCE = 6.0
"""Seconds to wait for a site that is only asked what is left of a run."""


class Shown(msgspec.Struct, frozen=True, kw_only=True):
    """One run: what was asked for, how it stands, what is left of it. The same on every machine that looks now."""

    run: Run
    status: Verdict
    retried_as: list[str]
    """Runs that were made of it by `retry`."""
    on_site: Parts | None
    """What is left on its site, as last seen; None if it has not ended, or nobody has looked."""
    metrics: list[Metric]
    """The last of each, of a run that has ended."""


class Here(msgspec.Struct, frozen=True, kw_only=True):
    """What only this machine knows of a run."""

    submitted: float | None
    looked_at: float | None
    """When its site was last looked at."""
    folder_seen_at: float | None
    """When its folder was."""
    removed_at: float | None
    """When `prune` removed its folder from its site."""
    copies: list[str]
    """Folders that have its results."""
    kept: Mirrored | None


def show(store: Store, entry: Entry, *, ask: bool) -> tuple[Shown, Here, list[str]]:
    """All that is known of a run. `ask`: look at what is left of an ended one. Also returns what to warn of."""
    run = entry.run.id
    warnings: list[str] = []
    if ask and entry.status.final:
        try:
            archive.inspect(store, entry, timeout=PATIENCE)
        except YurtError as error:
            context = entry.run.context
            warnings.append(f"could not look at {context}: {error.message.removeprefix(f'{context}: ')}")
        entry = store.get(run) or entry
    final = entry.status.final
    seen_at, parts = archive.known_parts(store, run) if final else (None, None)
    kept = store.kept(run) if final else None
    shown = Shown(
        run=entry.run,
        status=verdict_of(entry.status),
        retried_as=store.retries(run),
        on_site=parts,
        metrics=metrics.last(store, entry) if final else [],
    )
    return shown, here(store, entry, folder_seen_at=seen_at, kept=kept), warnings


def here(store: Store, entry: Entry, *, folder_seen_at: float | None = None, kept: Mirrored | None = None) -> Here:
    """What only this machine knows of a run."""
    run = entry.run.id
    return Here(
        submitted=entry.status.submitted,
        looked_at=store.looked_at(entry.run.context),
        folder_seen_at=folder_seen_at,
        removed_at=store.gone_at(run),
        copies=[_path(copy.target) for copy in store.copies(run) if Path(os.fsdecode(copy.target)).is_dir()],
        kept=kept,
    )


def _path(path: bytes) -> str:
    return path.decode(errors="backslashreplace")
