"""Which version of a workspace a user means: `v12`, `12`, `14:30`, `2026-11-16`, `2h ago`. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime

from yurt.errors import NotFoundError, UserError
from yurt.model.moments import moment
from yurt.model.workspace import Version

NUMBER = re.compile(r"v?([0-9]{1,9})")
EXAMPLES = "for example: `--at v12`, `--at 14:30`, `--at 2026-11-16` or `--at '2h ago'`"


def chosen(versions: Sequence[Version], at: str, now: float) -> Version:
    """Return the version that `at` names, or the last one that is not a fork at that time; the newest if it is empty.

    UserError: `at` is neither a version nor a time. NotFoundError: there is no such version.
    """
    main = [each for each in versions if not each.fork]
    if not at:
        found = main[-1] if main else None
        what = "backup"
    elif number := NUMBER.fullmatch(at):
        found = next((each for each in versions if each.number == int(number[1])), None)
        what = f"version v{int(number[1])}"
    else:
        try:
            until = moment(at, now)
        except ValueError:
            raise UserError(f"--at '{at}' is neither a version nor a time", code="usage", hint=EXAMPLES) from None
        found = next((each for each in reversed(main) if each.time <= until), None)
        what = f"version from before {datetime.fromtimestamp(until):%Y-%m-%d %H:%M:%S}"
    if found is None:
        raise NotFoundError(
            f"there is no {what} of this workspace",
            code="not-found",
            hint="list its versions with `yurt dev backups`",
        )
    return found
