"""Which commands wait again for a site that did not respond in the last minute."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

import pytest

from yurt.clocks import clocks
from yurt.contexts import connect
from yurt.errors import UnreachableError
from yurt.model.context import Context

PLACE = Context(name="far", type="slurm", slurm_url="a@far")


def site(*silent: str, gave_up: bool = False, ago: float = 5) -> Any:
    """A backend of which these parts did not respond some seconds ago."""
    return SimpleNamespace(
        name="far",
        silent_since=lambda part: time.time() - ago if part in silent else None,
        gave_up=lambda _part: gave_up,
    )


def asks(backend: Any, **how: bool) -> str:
    try:
        connect.check_responds(PLACE, backend, **how)
    except UnreachableError as error:
        return error.code
    return "asks"


def test_a_command_about_one_site_asks_again_once() -> None:
    assert asks(site("")) == "asks"
    assert asks(site("", gave_up=True)) == "not-responding"
    assert asks(site("", gave_up=True), urgent=True) == "asks"


def test_a_command_about_several_sites_does_not() -> None:
    assert asks(site(""), alone=False) == "not-responding"
    assert asks(site("", ago=clocks().rest + 1), alone=False) == "asks"
    assert asks(site(), alone=False) == "asks"


def test_files_need_no_scheduler() -> None:
    down = site("Slurm", gave_up=True)
    assert asks(down, alone=False) == "asks"
    assert asks(down, scheduler=True) == "slurm-not-responding"
    with pytest.raises(UnreachableError, match=r"^far: Slurm did not respond at \d\d:\d\d:\d\d"):
        connect.check_responds(PLACE, down, scheduler=True)
