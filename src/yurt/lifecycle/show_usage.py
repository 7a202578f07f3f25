"""What a run used of its resources, for `show`."""

from __future__ import annotations

from yurt.errors import YurtError
from yurt.model import layout
from yurt.model.usage import Usage
from yurt.model.usage_samples import UsageCurve
from yurt.store import Entry


def usage(entry: Entry, read: bytes | None = None) -> Usage | None:
    """Return what a run used; of a running one, according to the samples just `read`, or that came with its metrics."""
    if entry.status.final or entry.status.state != "running":
        return entry.status.usage
    from yurt.model.usage_samples import usage as of_samples

    if read is None:
        from yurt.tracking.last import samples

        read = samples(entry)
    return of_samples(read)


def curve(entry: Entry, *, ask: bool) -> tuple[UsageCurve | None, list[str]]:
    """Return what a run used over time, and warnings. `ask`: query its site. UnreachableError: it is only there."""
    from yurt.model.usage_samples import curve as of_samples
    from yurt.tracking.last import samples

    text, warnings = samples(entry), list[str]()
    if ask and entry.run.folder and (not text or entry.status.final):
        from yurt.contexts import connect

        try:
            text = connect.responding_backend(entry.run.context).files.read(entry.run.folder, layout.USAGE) or text
        except YurtError as error:
            if not text:
                raise
            warnings = [error.message]
    return of_samples(text), warnings
