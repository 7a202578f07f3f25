"""home_sync: rounds in batch mode, or Unison with the user's own arguments for each pair."""

from __future__ import annotations

from collections.abc import Sequence

from yurt.homes import direct, rounds
from yurt.homes.outcomes import Round
from yurt.homes.paths import homes
from yurt.model.progress import Watch, unwatched


def batch(*, watch: Watch = unwatched) -> Round:
    """Sync all homes. UserError: no homes are in sync. RefusedError: another sync runs on this machine."""
    return rounds.run(homes(), watch=watch)


def pass_through(arguments: Sequence[str]) -> int:
    """Run Unison in the user's terminal with these arguments; return the highest exit code of all pairs.

    Arguments that need no roots, such as -help, run it once. Errors as for `batch`, and those of each place.
    """
    if direct.needs_no_roots(arguments):
        return direct.without_roots(arguments)
    return direct.run(homes(), arguments)
