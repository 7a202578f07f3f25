"""The kinds of values that options take, without click; `yurt.cli.option_types` makes click's types of them."""

from __future__ import annotations

from collections.abc import Sequence


class Number:
    """A number that is not below `least`."""

    def __init__(self, least: int | None = None, *, whole: bool = True) -> None:
        self.least = least
        self.whole = whole

    def read(self, text: str | float) -> float | None:
        """Return the number; None if the text is not one, or it is too small."""
        try:
            number = int(text) if self.whole else float(text)
        except ValueError:
            return None
        return number if self.least is None or number >= self.least else None  # nan fails every comparison


class Choice:
    """One of several words."""

    def __init__(self, words: Sequence[str]) -> None:
        self.words = words

    def read(self, text: str) -> str | None:
        """Return the word; None if it is not one of them."""
        return text if text in self.words else None


class Duration:
    """A time such as 10m, within `least` and `most` seconds."""

    def __init__(self, example: str, *, least: int = 0, most: int | None = None) -> None:
        self.example = example
        self.least = least
        self.most = most

    def read(self, _text: str) -> None:
        """Return None: only click's type reads it."""
