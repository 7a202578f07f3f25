"""Reads conda environments, within limits that no real file reaches. No I/O."""

from __future__ import annotations

from typing import Any

MOST_VALUES = 20_000
"""Maximum number of values once every alias is replaced by what it stands for."""


def read(text: str) -> Any:
    """Return the content of an environment.yml. ValueError with the reason, and the line if it is known."""
    import yaml

    from yurt.config import yaml_text

    try:
        yaml_text.check_size(text, MOST_VALUES, endless=True)
        return yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        at = f"line {mark.line + 1}: " if mark else ""
        raise ValueError(f"{at}{getattr(error, 'problem', None) or 'not in YAML format'}") from None
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except (AttributeError, KeyError):  # such as `!!bool maybe`
        raise ValueError("a value is not of the type that its tag names") from None
