"""Parameter sets that are too large are rejected before anything is created."""

from __future__ import annotations

from typing import Any

import pytest

from yurt.errors import UserError
from yurt.lifecycle.plan.arguments import check_sets
from yurt.model import params


@pytest.mark.parametrize(
    ("sets", "message"),
    [
        ([{"a": 1}, {"a": "x" * 300_000}], "task 1: argument 'xxxxxxxxxxxxxxxxxxxx…' is 300000 bytes"),
        ([{"a": ["x" * 40_000] * 5}], r"""task 0: argument '\["x*…' is 200016 bytes"""),
        ([{f"k{number}": "x" * 100_000 for number in range(20)}], "task 0: the arguments and environment variables"),
        ([{"a": "x\0y"}], "task 0: argument 'x\\\\0y' contains a NUL byte"),
        ([{"a": "x" * 20_000}] * 2000, "the parameters of the 2000 tasks are 38 MB"),
    ],
)
def test_too_large(sets: list[dict[str, Any]], message: str) -> None:
    with pytest.raises(UserError, match=message):
        check_sets(sets, ["python"], {}, passed=True)


def test_large_enough() -> None:
    check_sets([{"a": "x" * 131_071}, {"a": "\\u0000", "b": "ü" * 60_000}], ["python"], {}, passed=True)
    check_sets([{"a": "x" * 300_000}], ["python"], {}, passed=False)  # it is in params.json only
    most = params.SETS_LIMIT // 10_000 - 10
    check_sets([{"a": "x" * 9_990}] * most, ["python"], {}, passed=True)


def test_shared_arguments_and_variables_count_too() -> None:
    own = {f"V{number}": b"x" * 100_000 for number in range(18)}
    check_sets([{"a": "x" * 20_000}], [], own, passed=True)
    with pytest.raises(UserError, match="task 0: the arguments and environment variables are"):
        check_sets([{"a": "x" * 29_000, "b": "x" * 31_000, "c": "x" * 31_000}], [], own, passed=True)
