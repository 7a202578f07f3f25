"""Reads conda environments, within limits that no real file reaches. No I/O."""

from __future__ import annotations

from typing import Any

from yurt.config.text import DEEPEST

MOST_VALUES = 20_000
"""Maximum number of values once every alias is replaced by what it stands for."""


def read(text: str) -> Any:
    """Return the content of an environment.yml. ValueError with the reason, and the line if it is known."""
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        _check(yaml.parse(text, Loader=loader))
        return yaml.load(text, Loader=loader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        at = f"line {mark.line + 1}: " if mark else ""
        raise ValueError(f"{at}{getattr(error, 'problem', None) or 'not in YAML format'}") from None
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except (AttributeError, KeyError):  # such as `!!bool maybe`
        raise ValueError("a value is not of the type that its tag names") from None


def _check(events: Any) -> None:
    """ValueError if a text is nested too deeply, or if its aliases make it very large or contain themselves.

    The parser in C needs no stack for nesting, but what makes values from its events does, and crashes.
    """
    import yaml

    opened: list[tuple[str | None, int]] = []
    sizes: dict[str | None, int] = {}
    values = 0
    for event in events:
        if isinstance(event, yaml.AliasEvent):
            values += sizes.get(event.anchor, 1)
        elif isinstance(event, yaml.CollectionStartEvent):
            opened.append((event.anchor, values))
            sizes[event.anchor] = MOST_VALUES  # while it is open, an alias to it has no end
            values += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            anchor, before = opened.pop()
            sizes[anchor] = values - before
        elif isinstance(event, yaml.ScalarEvent):
            sizes[event.anchor] = 1
            values += 1
        if len(opened) > DEEPEST:
            raise ValueError(f"line {event.start_mark.line + 1}: it is nested more than {DEEPEST} levels deep")
        if values > MOST_VALUES:
            raise ValueError(f"line {event.start_mark.line + 1}: it has more than {MOST_VALUES} values, with aliases")
