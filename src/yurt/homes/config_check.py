"""Finds the faults of homes.yaml. Pure."""

from __future__ import annotations

import re
from typing import Any

from yurt.model.context_check import Fault, nearest
from yurt.model.context_keys import is_name
from yurt.model.resources import parse_seconds

CHOICES = {"unreadable": ("hold", "skip"), "unison_writes": ("home", "anywhere")}
_PROFILE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*", re.ASCII)


def faults_of(document: Any, known: tuple[str, ...], known_of_place: tuple[str, ...]) -> list[Fault]:
    """Return every fault of a parsed homes.yaml, whose keys, and those of each place, must be among the known ones."""
    if not isinstance(document, dict):
        return [Fault((), "must consist of `key: value` lines", "hub: local")]
    found = _unknown(document, known, ())
    for key in ("hub", "folder", "profile", "interval", "keep", "unreadable", "unison_writes", "backups"):
        value = document.get(key)
        if value is not None and (not isinstance(value, str) or not value.isprintable()):
            found.append(Fault((key,), "must be one line of text"))
        elif value is not None and (problem := _problem(key, value)):
            found.append(Fault((key,), problem))
    places = document.get("places")
    if places is not None and not isinstance(places, dict):
        return [*found, Fault(("places",), "must consist of `NAME: {}` lines", "alpha: {}")]
    for name, body in (places or {}).items():
        found += _place(name, body, known_of_place)
    return found


def _place(name: Any, body: Any, known: tuple[str, ...]) -> list[Fault]:
    path = ("places", str(name))
    if not is_name(str(name)):
        return [Fault(path, "is not a valid name of a context")]
    if body is not None and not isinstance(body, dict):
        return [Fault(path, "must consist of `key: value` lines, or be empty", f"{name}: {{}}")]
    found = _unknown(body or {}, known, path)
    for key, value in (body or {}).items():
        if value is not None and (not isinstance(value, str) or not value.isprintable()):
            found.append(Fault((*path, str(key)), "must be one line of text"))
        elif key == "address" and value and (value.startswith("-") or " " in value):
            found.append(Fault((*path, "address"), "must be an address for ssh", "address: alice@login.big.example"))
    return found


def _unknown(body: dict[Any, Any], known: tuple[str, ...], path: tuple[str, ...]) -> list[Fault]:
    found = []
    for key in body:
        if key not in known:
            near = nearest(str(key), known)
            found.append(Fault((*path, str(key)), "is not a known key" + (f"; did you mean {near}?" if near else "")))
    return found


def _problem(key: str, value: str) -> str:
    """Return what is wrong with a value, as the end of a sentence; empty if nothing is."""
    if key in ("keep", "interval") and value:
        try:
            parse_seconds(value)
        except ValueError:
            return "must be a positive duration such as 30m, 12h or 90d"
    if key == "profile" and not _PROFILE.fullmatch(value):
        return "must be the name of a Unison profile: letters, digits, '.', '_' and '-'"
    if key == "folder" and (not value.startswith(("/", "~")) or not value.strip("/")):
        return "must be an absolute path, or begin with ~/"
    if key in CHOICES and value not in CHOICES[key]:
        return f"must be {' or '.join(f'`{each}`' for each in CHOICES[key])}"
    if key == "hub" and not is_name(value):
        return "must be `local` or the name of a context"
    return ""
