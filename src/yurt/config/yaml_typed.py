"""YAML with typed scalars, for parameters of experiments, whose keys do not decide the type.

Numbers and booleans follow YAML 1.2, which includes 1e-3. 0123, 12:00:00, 1_000, yes and no are text.
"""

from __future__ import annotations

import re
from typing import Any

import yaml

from yurt.config.yaml_text import Strict
from yurt.model.context_check import described

_TRUTH = re.compile(r"(true|True|TRUE)|false|False|FALSE")
_WHOLE = re.compile(r"[-+]?(?:0|[1-9][0-9]*)|0o[0-7]+|0x[0-9a-fA-F]+")
_REAL = re.compile(r"[-+]?(?:\.[0-9]+|(?:0|[1-9][0-9]*)(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_NEITHER = re.compile(r"([-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))")
_WORD = re.compile(r"yes|no|on|off", re.IGNORECASE)


class _Typed(Strict):
    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.words: list[tuple[int, str]] = []

    def value(self, node: Any) -> Any:
        text: str = self.construct_scalar(node)
        if truth := _TRUTH.fullmatch(text):
            return truth[1] is not None
        try:
            return (
                int(text, 0)
                if _WHOLE.fullmatch(text)
                else float(text.replace(".", "") if _NEITHER.match(text) else text)
            )
        except ValueError:
            raise yaml.constructor.ConstructorError(
                None, None, f"{described(text)} is not a number", node.start_mark
            ) from None

    def word(self, node: Any) -> str:
        text: str = self.construct_scalar(node)
        self.words.append((node.start_mark.line + 1, text))
        return text


def _means(tag: str, pattern: re.Pattern[str], first: str, make: Any) -> None:
    _Typed.add_implicit_resolver(tag, re.compile(rf"(?:{pattern.pattern})\Z", pattern.flags), list(first))
    _Typed.add_constructor(tag, make)


_means("tag:yaml.org,2002:bool", _TRUTH, "tTfF", _Typed.value)
_means("tag:yaml.org,2002:int", _WHOLE, "-+0123456789", _Typed.value)
_means("tag:yaml.org,2002:float", _REAL, "-+.0123456789", _Typed.value)
_means("tag:yaml.org,2002:float", _NEITHER, "-+.", _Typed.value)
_means("!word", _WORD, "yYnNoO", _Typed.word)


def parse(text: str) -> tuple[Any, list[tuple[int, str]]]:
    """Return the parsed text, and (line, word) of each word that YAML 1.1 reads as a boolean.

    yaml.YAMLError if it is not valid YAML or has duplicate keys.
    """
    loader = _Typed(text)
    try:
        return loader.get_single_data(), loader.words
    finally:
        loader.dispose()
