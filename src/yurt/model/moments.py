"""Which time a user means: `14:30`, `2026-11-16`, `2026-11-16 14:30`, `yesterday`, `2h ago`. Pure."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

from yurt.model.resources import parse_seconds

CLOCK = re.compile(r"([0-9]{1,2}):([0-9]{2})(?::([0-9]{2}))?")
FORMS = ("%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M")


def moment(text: str, now: float) -> float:
    """Return the time that a text means, in seconds since 1970. A day means its end. ValueError if it means none."""
    today = datetime.fromtimestamp(now)
    words = text.strip()
    try:
        if words.endswith(" ago"):
            seconds = parse_seconds(words.removesuffix("ago").strip().replace(" ", ""))
            return (today - timedelta(seconds=seconds)).timestamp()
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
    except OverflowError:
        raise ValueError(f"'{text}' is out of range") from None
    raise ValueError(f"'{text}' is not a time")


def _pattern(form: str) -> str:
    return re.sub(r"%(.)", lambda found: r"\d{4}" if found[1] == "Y" else r"\d{2}", form)
