"""The rules about causes of failures: rules.toml, and the user's own why.toml. Data; no rule is written in Python."""

from __future__ import annotations

import re
import signal
import threading
import time
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from yurt.errors import UserError

OWN = "why.toml"
"""The user's file, in the configuration folder."""

MOST = 5.0
"""Seconds for all rules of the user: a regular expression can take hours."""


class Rule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One cause: when it applies, and what to say."""

    name: str
    cause: str
    match: str = ""
    states: tuple[str, ...] = ("failed",)
    exits: tuple[int, ...] = ()
    signals: tuple[int, ...] = ()
    advice: str = ""
    retry: str = ""

    def applies(self, state: str, code: int | None, signal: int | None) -> bool:
        """Whether the rule is tried for a run that ended like this."""
        if state not in self.states or (self.exits and code not in self.exits):
            return False
        return not self.signals or signal in self.signals

    def search(self, line: str) -> dict[str, str] | None:
        """Return the named groups in a line; None if it does not match. `file_2` counts as `file`."""
        found = _pattern(self.match).search(line)
        if found is None:
            return None
        groups: dict[str, str] = {}
        for name, value in found.groupdict().items():
            if value is not None:
                groups.setdefault(re.sub(r"_\d+$", "", name), value.strip())
        return groups

    def find(self, lines: Sequence[str]) -> tuple[dict[str, str], str] | None:
        """Return the groups and the line of the last match; None if no line matches."""
        for line in reversed(lines):
            groups = self.search(line)
            if groups is not None:
                return groups, line
        return None


class OwnRule(Rule, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A rule of the user. All of them together have a limited time."""

    def find(self, lines: Sequence[str]) -> tuple[dict[str, str], str] | None:
        try:
            with _CLOCK.running():
                return super().find(lines)
        except TooSlowError:
            raise UserError(
                f"{OWN}: rule '{self.name}' takes too long: its `match` was still tried after {MOST:.0f} seconds",
                code="config-invalid",
                hint="simplify the expression; a group that repeats inside a repeated group, as in `(a+)+`, is slow",
            ) from None


class TooSlowError(Exception):
    """There is no time left for rules of the user."""


class _Clock:
    """The time that is left for rules of the user. Only the main thread of a program can be interrupted."""

    def __init__(self) -> None:
        self.left = MOST

    @contextmanager
    def running(self) -> Iterator[None]:
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        if self.left <= 0:
            raise TooSlowError
        began = time.monotonic()
        before = signal.signal(signal.SIGALRM, _stop)
        signal.setitimer(signal.ITIMER_REAL, self.left)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
            self.left -= time.monotonic() - began


def _stop(_number: int, _frame: object) -> None:
    raise TooSlowError


_CLOCK = _Clock()


@cache
def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(text)


@cache
def known() -> Sequence[Rule]:
    """Return the rules that yurt has."""
    text = (Path(__file__).parent / "rules.toml").read_text(encoding="utf-8")
    return msgspec.convert(tomllib.loads(text)["rule"], list[Rule])


def own(folder: Path) -> Sequence[Rule]:
    """Return the rules of the user. UserError, with the place, if the file is not valid."""
    file = folder / OWN
    _CLOCK.left = MOST
    try:
        rules = _rules(tomllib.loads(file.read_text(encoding="utf-8")))
        for each in rules:
            _check(each)
    except FileNotFoundError:
        return ()
    except OSError as error:
        problem = error.strerror or str(error)
    except ValueError as error:  # also invalid TOML, and bytes that are not UTF-8
        problem = str(error)
    else:
        return rules
    raise UserError(
        f"{file} is not valid: {problem}",
        code="config-invalid",
        hint="each rule is a block `[[rule]]` with `name`, `match` and `cause`; correct the file",
    )


def _rules(body: dict[str, Any]) -> list[OwnRule]:
    unknown = sorted(body.keys() - {"rule"})
    if unknown:
        raise ValueError(f"unknown key '{unknown[0]}'")
    blocks = body.get("rule", [])
    if not isinstance(blocks, list) or not all(isinstance(each, dict) for each in blocks):
        raise ValueError("a rule must be a block that begins with `[[rule]]`")
    for number, block in enumerate(blocks, 1):
        problem = _problem(block)
        if problem:
            name = block.get("name")
            raise ValueError(f"rule {repr(name) if name and isinstance(name, str) else number}: {problem}")
    return msgspec.convert(blocks, list[OwnRule])


def _problem(block: dict[str, Any]) -> str:
    """Return what is wrong with the keys of a rule, or with the types of their values; empty if nothing is."""
    lists = {"states": (str, "words, such as ['failed']"), "exits": (int, "numbers, such as [3]")}
    lists["signals"] = (int, "numbers, such as [9]")
    keys = OwnRule.__struct_fields__
    unknown = sorted(block.keys() - set(keys))
    if unknown:
        return f"unknown key '{unknown[0]}'; use {', '.join(keys[:-1])} or {keys[-1]}"
    for key in ("name", "cause"):
        if not block.get(key):
            return f"`{key}` is missing"
    for key, value in block.items():
        kind, such = lists.get(key, (str, ""))
        if not such and not isinstance(value, str):
            return f"`{key}` must be text in quotes, not {value!r}"
        if such and not (isinstance(value, list) and all(type(each) is kind for each in value)):
            return f"`{key}` must be a list of {such}, not {value!r}"
    return ""


def _check(rule: Rule) -> None:
    try:
        re.compile(rule.match)
    except re.error as error:
        raise ValueError(f"`match` of rule '{rule.name}' is not a regular expression: {error}") from None
    if not rule.match and not rule.exits and not rule.signals:
        raise ValueError(f"rule '{rule.name}' has neither `match` nor `exits` nor `signals`")
    for key in ("cause", "advice", "retry"):
        number = re.search(r"\{\d*\}", getattr(rule, key))
        if number is not None:
            raise ValueError(
                f"`{key}` of rule '{rule.name}' has {number[0]}: only groups with a name can be used,"
                " such as (?P<what>…) as {what}"
            )
