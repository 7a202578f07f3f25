"""Calls of `yurt dev` that must succeed."""

from __future__ import annotations

from typing import Any

from tests.laptop import Laptop


def dev(laptop: Laptop, *words: str) -> Any:
    """Call `yurt dev` and return the data of its result."""
    done = laptop.quick("dev", *words, "--json")
    assert done.code == 0, done
    return done.json["data"]


def up(laptop: Laptop, name: str, *words: str) -> Any:
    """Start a small dev node on alpha."""
    return dev(laptop, "up", name, "--context", "alpha", "--cpus", "1", *words)


def inside(laptop: Laptop, name: str, command: str) -> str:
    """Run a command in the workspace of a dev node and return its output."""
    done = laptop("dev", "ssh", name, "--", command)
    assert done.code == 0, done
    return done.out
