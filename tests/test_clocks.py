"""YURT_CLOCKS: changes times, and rejects unknown names and values."""

from __future__ import annotations

import pytest

from tests.calls import Yurt
from yurt import clocks
from yurt.errors import UserError


def test_changes_some_and_keeps_the_others() -> None:
    changed = clocks.read("settling=2.5 lease=12")
    assert (changed.settling, changed.lease, changed.forgiving) == (2.5, 12, clocks.Clocks().forgiving)
    assert clocks.read("") == clocks.Clocks()


@pytest.mark.parametrize("text", ["setling=2", "settling=soon", "lease", "lease=1.5", "lease=0"])
def test_unknown_names_and_values(text: str) -> None:
    with pytest.raises(UserError, match="YURT_CLOCKS") as caught:
        clocks.read(text)
    assert "settling, forgiving" in caught.value.hint


def test_error_on_the_command_line(yurt: Yurt) -> None:
    done = yurt("run", "--no-snapshot", "--wait", "true", environment={"YURT_CLOCKS": "lease=long"})
    assert done.code == 2 and "YURT_CLOCKS" in done.err and "Traceback" not in done.err
