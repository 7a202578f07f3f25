"""Which version of a workspace a user means: `v12`, `12`, `14:30`, `2026-11-16`, `2h ago`. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime, timedelta

from yurt.errors import NotFoundError, UserError
from yurt.model.resources import parse_seconds
from yurt.model.workspace import Version

NUMBER = re.compile(r"v?([0-9]{1,9})")
CLOCK = re.compile(r"([0-9]{1,2}):([0-9]{2})(?::([0-9]{2}))?")
FORMS = ("%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M")
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
        until = moment(at, now)
        found = next((each for each in reversed(main) if each.time <= until), None)
        what = f"version from before {datetime.fromtimestamp(until):%Y-%m-%d %H:%M:%S}"
    if found is None:
        raise NotFoundError(
            f"there is no {what} of this workspace",
            code="not-found",
            hint="list its versions with `yurt dev backups`",
        )
    return found


def moment(text: str, now: float) -> float:
    """Return the time that a text means, in seconds since 1970. A day means its end. UserError if it means none."""
    today = datetime.fromtimestamp(now)
    words = text.strip()
    if words.endswith(" ago"):
        try:
            seconds = parse_seconds(words.removesuffix("ago").strip().replace(" ", ""))
            return (today - timedelta(seconds=seconds)).timestamp()
        except (ValueError, OverflowError):
            raise _unclear(text) from None
    try:
        if clock := CLOCK.fullmatch(words):
            hour, minute, second = int(clock[1]), int(clock[2]), int(clock[3] or 59)
            found = today.replace(hour=hour, minute=minute, second=second, microsecond=0)
            return (found if found.timestamp() <= now else found - timedelta(days=1)).timestamp()
        if words == "yesterday":
            return today.replace(hour=0, minute=0, second=0, microsecond=0).timestamp() - 1
        if re.fullmatch(r"\d{4}-\d{2}-\d{2}", words):
            return (datetime.strptime(words, "%Y-%m-%d") + timedelta(days=1)).timestamp() - 1
        for form in FORMS:
            if re.fullmatch(_pattern(form), words):
                return datetime.strptime(words, form).timestamp()
    except (ValueError, OverflowError):
        raise _unclear(text) from None
    raise _unclear(text)


def _pattern(form: str) -> str:
    return re.sub(r"%(.)", lambda found: r"\d{4}" if found[1] == "Y" else r"\d{2}", form)


def _unclear(text: str) -> UserError:
    return UserError(f"--at '{text}' is neither a version nor a time", code="usage", hint=EXAMPLES)
