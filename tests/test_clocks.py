"""YURT_CLOCKS changes timeouts and rejects unknown names."""

from __future__ import annotations

import pytest

from tests.calls import Yurt
from yurt import clocks
from yurt.errors import UserError


def test_other_values_keep_their_defaults() -> None:
    changed = clocks.read("settling=2.5 lease=12")
    assert (changed.settling, changed.lease, changed.forgiving) == (2.5, 12, clocks.Clocks().forgiving)
    assert clocks.read("") == clocks.Clocks()


@pytest.mark.parametrize("text", ["setling=2", "settling=soon", "lease", "lease=1.5", "lease=0"])
def test_invalid_names_and_values(text: str) -> None:
    with pytest.raises(UserError, match="YURT_CLOCKS") as caught:
        clocks.read(text)
    assert "`settling`, `forgiving`" in caught.value.hint


def test_the_command_line_reports_it(yurt: Yurt) -> None:
    done = yurt("run", "--no-snapshot", "--wait", "true", environment={"YURT_CLOCKS": "lease=long"})
    assert done.code == 2 and "YURT_CLOCKS" in done.err and "Traceback" not in done.err
