"""One set of a plan without the others: the same as the decoded plan, or nothing."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from yurt.model.run import Plan
from yurt.store.one_set import one_set

VALUES: st.SearchStrategy[Any] = st.one_of(
    st.integers(),
    st.booleans(),
    st.none(),
    st.sampled_from(["a", "},{", "}]", '"sets":[', '}],"arguments":', "\\", ""]),
    st.just([{}, {}]),
)
SETS = st.lists(
    st.dictionaries(st.sampled_from(["a", "sets", "},{", "arguments"]), VALUES, max_size=3), min_size=1, max_size=6
)


@given(SETS, st.booleans(), SETS)
def test_never_another_set(sets: list[dict[str, Any]], calls: bool, other: list[dict[str, Any]]) -> None:
    plan = {"run": {"params": {"x": other}}, "sets": sets, "arguments": not calls, "calls": calls, "z": [{"a": 1}]}
    text = msgspec.json.encode(plan)
    for number, each in enumerate(sets):
        found = one_set(text, number, len(sets))
        if found is not None:
            assert msgspec.json.decode(found.own) == each
            assert (found.arguments, found.calls) == (not calls, calls)


@pytest.mark.parametrize("number", [0, 1, 499, 500, 501, 998, 999, *range(200, 300)])
def test_the_usual_plan(number: int) -> None:
    sets = [{"seed": each, "lr": 0.1, "text": "x" * (each % 97)} for each in range(1000)]
    found = one_set(msgspec.json.encode({"run": {"params": {}}, "sets": sets, "arguments": True}), number, 1000)
    assert found is not None and msgspec.json.decode(found.own) == sets[number]
    assert found.arguments and not found.calls


def test_a_plan_has_the_key_that_ends_the_sets() -> None:
    fields = Plan.__struct_fields__
    assert fields[fields.index("sets") + 1] == "arguments"


def test_a_plan_without_sets() -> None:
    assert one_set(b'{"sets":[]}', 0, 0) is None
    assert one_set(b"{}", 0, 1) is None
