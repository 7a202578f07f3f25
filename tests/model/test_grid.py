"""Grids: parsing of values, and the parameter sets they make: complete, ordered, typed, limited."""

from __future__ import annotations

import itertools
import json
import math
import time
import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from yurt.model import grid
from yurt.model.grid import LIMIT, Axis, Grid, GridError, Sets, axis, fixed, limited, shuffled, unique, zipped
from yurt.model.grid_text import axes, column, pair

FILES = {"seeds.txt": "# mine\n1\n\n  2.5 \ntrue\nplain text\n#last\n", "blank.txt": "\n# nothing\n"}


def read(name: str) -> str:
    if name == "latin.txt":
        return b"\xe9".decode()
    if name not in FILES:
        raise FileNotFoundError(2, "No such file or directory")
    return FILES[name]


def exactly(values: Any) -> str:
    """Return text that differs if a type differs."""
    return json.dumps(list(values))


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("1", [1]),
        ("1,1.0,true,null,a", [1, 1.0, True, None, "a"]),
        (" 0.1, b c ", [0.1, "b c"]),
        ("1e-3,1e3", [0.001, 1000.0]),
        ("0123,1_000,yes,nan,1.2.3", ["0123", "1_000", "yes", "nan", "1.2.3"]),
        ("99999999999999999999999", ["99999999999999999999999"]),
        ("1..4", [1, 2, 3, 4]),
        ("-1..1", [-1, 0, 1]),
        ("3..3", [3]),
        ("0..10..5", [0, 5, 10]),
        ("0..9..5", [0, 5]),
        ("5..1..-2", [5, 3, 1]),
        ("0..0.5..0.1", [0.0, 0.1, 0.2, 0.3, 0.4, 0.5]),
        ("0.1..0.3..0.1", [0.1, 0.2, 0.3]),
        ("1..0..-0.25", [1.0, 0.75, 0.5, 0.25, 0.0]),
        ("1e-3..3e-3..1e-3", [0.001, 0.002, 0.003]),
        ("1..2,7,0..1..0.5", [1, 2, 7, 0.0, 0.5, 1.0]),
        ("../data,a..b,v1..v2,1.2.3..x", ["../data", "a..b", "v1..v2", "1.2.3..x"]),
        ('["1..x", "1.."]', ["1..x", "1.."]),
        ('"1..x"', ['"1..x"']),
        ('["a,b", 2, "2", [1], null]', ["a,b", 2, "2", [1], None]),
        ("[64,64],[32]", [[64, 64], [32]]),
        ("[[64, 64]]", [[64, 64]]),
        ('[{"a": 1}]', [{"a": 1}]),
        ("@seeds.txt", [1, 2.5, True, "plain text"]),
    ],
)
def test_values_as_typed(text: str, values: list[Any]) -> None:
    assert exactly(column(text, read)) == exactly(values)


@pytest.mark.parametrize(
    ("text", "problem", "hint"),
    [
        ("", "has no values", "0.1,0.01"),
        ("[]", "has no values", "0.1,0.01"),
        ("1,,2", "has an empty value between two commas or after the last one", '["a", ""]'),
        ("1,", "has an empty value between two commas or after the last one", '["a", ""]'),
        ("1..x", 'has the range 1..x, but a range needs numbers; write ["1..x"] for text', "1..5"),
        ("1..", 'has the range 1.., but a range needs numbers; write ["1.."] for text', "1..5"),
        ("..5", "has the range ..5, but a range needs numbers", "1..5"),
        ("a..5", "has the range a..5, but a range needs numbers", "1..5"),
        ("0.1,1...3", "has the range 1...3, but a range needs numbers", "1..5"),
        ("1..2..", "has the range 1..2.., but a range needs numbers", "1..5"),
        ("1..2..x", "has the range 1..2..x, but a range needs numbers", "1..5"),
        ("1..\udce9", "has the range 1..\\xe9, but a range needs numbers", "1..5"),
        ("1..0", "has the range 1..0, which is empty", "0..1"),
        ("0..1..-1", "has the range 0..1..-1, which is empty", "1..0..-1"),
        ("1..0..0.5", "has the range 1..0..0.5, which is empty", "0..1..0.5"),
        ("0..1..0", "has the range 0..1..0, whose step is 0", "0..1..1"),
        ("0..1..0.0", "has the range 0..1..0.0, whose step is 0", "0..1..1"),
        ("0.1..0.5", "has the range 0.1..0.5, which needs a step", "0.1..0.5..0.1"),
        ("0..1..1e-9", "has 1,000,000,001 values; the maximum is 100,000", ""),
        ("1..999999999999999999999999999999", "has 999,999,999,999,999,999,999,999,999,999 values; the", ""),
        ("1..60000,1..60000", "has 120,000 values; the maximum is 100,000", ""),
        ("1e300..9e300..1e300,1e308..3e308..1e308", "has the range 1e308..3e308..1e308 with a value that is inf", ""),
        ("[a, b]", "starts with '[' but is not a JSON list", '["a,b", 2]'),
        ("[1e999]", "starts with '[' but is not a JSON list", '["a,b", 2]'),
        ("\udce9", "has a value that is not UTF-8 text: \\xe9", ""),
        ("[\udce9]", "starts with '[' but is not a JSON list", '["a,b", 2]'),
        ("@", "has an '@' without a file name", "@values.txt"),
        ("@gone.txt", "names the file gone.txt, which cannot be read: No such file or directory", "@values.txt"),
        ("@latin.txt", "names the file latin.txt, which cannot be read: not UTF-8 text", "@values.txt"),
        ("@blank.txt", "has no values: blank.txt contains only blank lines and comments", "@blank.txt"),
    ],
)
def test_invalid_values(text: str, problem: str, hint: str) -> None:
    with pytest.raises(GridError) as error:
        column(text, read)
    assert error.value.problem.startswith(problem) and error.value.hint == hint


def test_a_huge_range_is_counted_but_not_expanded() -> None:
    with pytest.raises(GridError):  # 10^60 values
        column("0..1e30..1e-30", read)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("lr", "--grid lr has no '='"),
        ("=1", "--grid =1: invalid parameter name ''"),
        ("a b=1", "--grid a b=1: invalid parameter name 'a b'"),
    ],
)
def test_invalid_pair(text: str, problem: str) -> None:
    with pytest.raises(GridError) as error:
        pair(text, "--grid", "0.1,0.01")
    assert error.value.problem.startswith(problem) and error.value.hint == "for example: `--grid lr=0.1,0.01`"
    assert pair("a=b=c", "--grid", "1") == ("a", "b=c")


KEYS = st.text("abcXYZ_.-019", min_size=1, max_size=4).filter(lambda key: key.strip("-"))
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(1 << 63), (1 << 64) - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text('aé€ "\\,=1', max_size=5)
)
VALUES = SCALARS | st.lists(SCALARS, max_size=3)
COLUMNS = st.dictionaries(KEYS, st.lists(VALUES, min_size=1, max_size=4), max_size=4)


@given(COLUMNS)
def test_the_product_equals_nested_loops(columns: dict[str, list[Any]]) -> None:
    sets = Sets([Grid(axes(columns, {}))])
    expected = [dict(zip(columns, row, strict=True)) for row in itertools.product(*columns.values())]
    assert len(sets) == len(expected) == math.prod(map(len, columns.values()))
    assert exactly(sets) == exactly(expected)
    assert exactly(sets[place] for place in range(len(sets))) == exactly(expected)


@given(st.lists(COLUMNS, min_size=1, max_size=3))
def test_grids_follow_each_other(several: list[dict[str, list[Any]]]) -> None:
    sets = Sets([Grid(axes(columns, {})) for columns in several])
    expected = [each for columns in several for each in Sets([Grid(axes(columns, {}))])]
    assert len(sets) == len(expected) and exactly(sets) == exactly(expected)
    assert exactly(sets[place] for place in range(len(sets))) == exactly(expected)


@given(st.integers(1, 4).flatmap(lambda n: st.dictionaries(KEYS, st.lists(VALUES, min_size=n, max_size=n), min_size=1)))
def test_zipped_keys_are_one_axis_and_vary_slowest(columns: dict[str, list[Any]]) -> None:
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    sets = Sets([Grid(axes({"seed of all": [1, 2]}, columns))])
    assert exactly(sets) == exactly({**row, "seed of all": seed} for row in rows for seed in (1, 2))


@given(COLUMNS, st.integers(0, 1 << 32))
def test_shuffled_depends_only_on_the_seed(columns: dict[str, list[Any]], seed: int) -> None:
    sets = Sets([Grid(axes(columns, {}))])
    one = list(shuffled(sets, seed))
    assert exactly(one) == exactly(shuffled(sets, seed))
    assert sorted(map(exactly_one, one)) == sorted(map(exactly_one, sets))


def exactly_one(each: dict[str, Any]) -> bytes:
    return json.dumps(each, sort_keys=True).encode()


def test_seeds_give_different_and_stable_orders() -> None:
    sets = Sets([Grid([axis("a", range(10))])])
    assert [each["a"] for each in shuffled(sets, 7)] == [8, 3, 1, 4, 7, 0, 9, 6, 2, 5], "the same on every Python"
    assert list(shuffled(sets, 7)) != list(shuffled(sets, 8))


@given(COLUMNS, st.integers(1, 50), st.integers(0, 5))
def test_limited_takes_the_first(columns: dict[str, list[Any]], limit: int, seed: int) -> None:
    sets = shuffled(Sets([Grid(axes(columns, {}))]), seed)
    assert exactly(limited(sets, limit)) == exactly(list(sets)[:limit])


def test_a_limit_of_zero() -> None:
    with pytest.raises(GridError, match="--limit 0 leaves no parameter sets"):
        limited(Sets([Grid([])]), 0)


@given(st.lists(COLUMNS, min_size=1, max_size=3))
def test_every_set_once(several: list[dict[str, list[Any]]]) -> None:
    sets = Sets([Grid(axes(columns, {})) for columns in several])
    once, warnings = unique(sets)
    kept = list(map(exactly_one, once))
    assert kept == list(dict.fromkeys(map(exactly_one, sets)))
    assert bool(warnings) == (len(once) < len(sets))
    again, none = unique(once)
    assert exactly(again) == exactly(once) and not none


def test_duplicates_depend_on_type_and_not_on_the_order_of_keys() -> None:
    sets, warnings = unique(Sets([Grid([axis("a", [1, 1.0, True, "1", 1])])]))
    assert exactly(each["a"] for each in sets) == exactly([1, 1.0, True, "1"])
    assert warnings == ["1 parameter set is given more than once and will run only once: a=1 (2 times)"]
    both = Sets([Grid([fixed({"a": 1, "b": 2})]), Grid([fixed({"b": 2, "a": 1})])])
    assert list(unique(both)[0]) == [{"a": 1, "b": 2}]


def test_many_duplicates_are_counted() -> None:
    values = [*range(9), *range(9)]
    (warning,) = unique(Sets([Grid([axis("a", values), axis("b", ["x" * 200])])]))[1]
    assert warning.startswith("9 parameter sets are given more than once and will run only once: a=0 b=xxx")
    assert warning.endswith("(2 times); and 6 more") and len(warning) < 400


def test_a_later_axis_sets_the_value() -> None:
    sets, warnings = unique(Sets([Grid([axis("a", [1, 2]), fixed({"a": 3, "b": 4})])]))
    assert list(sets) == [{"a": 3, "b": 4}] and warnings
    left = zipped({"a": [1, 2], "b": [3, 4]}).without({"a"})
    assert left is not None and list(left.rows) == [{"b": 3}, {"b": 4}]
    assert axis("a", [1]).without({"a"}) is None


def test_zipped_keys_of_different_lengths() -> None:
    with pytest.raises(GridError, match=r"^zipped keys need the same number of values, but b has 3 and c has 1$"):
        zipped({"a": [1, 2], "b": [1, 2, 3], "c": [1]})


def test_empty_grids() -> None:
    for empty in ([], [Grid([Axis("a", [])])]):
        with pytest.raises(GridError, match="the grid is empty"):
            Sets(empty)
    assert list(Sets([Grid([])])) == [{}], "a grid without axes is one run without parameters"


def test_too_many_sets_are_counted_but_not_made() -> None:
    hundred = list(range(100))
    big = Grid([axis("lr", hundred), fixed({"x": 1}), axis("seed", hundred), axis("depth", hundred)])
    with pytest.raises(GridError) as error:
        Sets([big])
    problem = "the sweep has 1,000,000 combinations (lr 100 x seed 100 x depth 100); the maximum is 100,000"
    assert error.value.problem == problem and error.value.hint
    with pytest.raises(GridError, match=r"1,000,001 combinations \(2 grids, the largest lr 100 x"):
        Sets([big, Grid([])])
    with pytest.raises(GridError, match="combinations"):
        Sets([Grid([axis(str(number), hundred) for number in range(50)])])
    assert len(Sets([Grid([axis("a", range(LIMIT))])])) == LIMIT


def test_ten_thousand_sets_need_little_time_and_memory() -> None:
    def expand() -> int:
        sets, _ = unique(Sets([Grid([axis(key, range(size)) for key, size in zip("abcde", sizes, strict=True)])]))
        return sum(1 for _ in limited(shuffled(sets, 1), 9_999)) + sum(1 for _ in sets)

    def plain() -> int:
        return sum(len({"a": number, "b": str(number)}) for number in range(100_000))

    sizes = (10, 10, 10, 5, 2)
    assert expand() == 19_999
    best = {expand: math.inf, plain: math.inf}
    for each in [expand, plain] * 3:  # side by side: a busy machine slows both
        began = time.process_time()
        each()
        best[each] = min(best[each], time.process_time() - began)
    assert best[expand] < 4 * best[plain]
    tracemalloc.start()
    try:
        expand()
        assert tracemalloc.get_traced_memory()[1] < 2_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (math.inf, "is inf, which JSON cannot represent"),
        (math.nan, "is nan, which JSON cannot represent"),
        ([{"a": math.nan}], "is nan, which JSON cannot represent"),
        (1 << 64, "is a number with more than 64 bits"),
        ({1: 2}, "has the mapping key 1, but keys must be text"),
        (["\udce9"], "is not UTF-8 text: .xe9"),
        (b"x", "has the type bytes; use a number"),
    ],
)
def test_what_json_cannot_represent(value: Any, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        grid.checked(value)


def test_a_list_that_contains_itself() -> None:
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(ValueError, match="is nested too deeply"):
        grid.checked(loop)


@given(st.recursive(VALUES, lambda inner: st.lists(inner) | st.dictionaries(KEYS, inner), max_leaves=8))
def test_types_survive(value: Any) -> None:
    assert exactly([grid.checked(value)]) == exactly([value])
