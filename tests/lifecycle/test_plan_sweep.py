"""Flags, a configuration and a spec file combined: their precedence, and invalid combinations."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from yurt.errors import UserError
from yurt.lifecycle.plan import sweep
from yurt.lifecycle.plan.sweep import Flags, SweepPlan, words

FIXTURES = Path(__file__).parents[1] / "fixtures" / "mrunner"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def written(name: str, text: str) -> Path:
    file = Path(name)
    file.write_text(text)
    return file


def planned(**flags: Any) -> SweepPlan:
    return sweep.read(Flags(**flags))


def rows(**flags: Any) -> list[dict[str, Any]]:
    return list(planned(**flags).sets)


def exactly(values: Any) -> str:
    return json.dumps(list(values))


def test_nothing_given_is_one_run() -> None:
    plan = planned()
    assert list(plan.sets) == [{}] and len(plan.sets) == 1 and not plan.sweep
    assert not planned(param=["lr=0.1"]).sweep and planned(grid=["lr=0.1"]).sweep


def test_flags_alone() -> None:
    made = rows(param=["opt=adam", "layers=[64, 64]", "n=null"], zip=["w=1,2", "d=0.5,1.0"], grid=["b=x,y", "a=1..2"])
    assert len(made) == 2 * 2 * 2
    assert exactly(made[:3]) == exactly(
        {"w": w, "d": d, "b": b, "a": a, "opt": "adam", "layers": [64, 64], "n": None}
        for w, d, b, a in ((1, 0.5, "x", 1), (1, 0.5, "x", 2), (1, 0.5, "y", 1))
    )


def test_files_of_values_and_commas() -> None:
    written("seeds.txt", "1\n# no\n2\n")
    assert rows(grid=["seed=@seeds.txt", 'text=["a,b"]']) == [{"seed": 1, "text": "a,b"}, {"seed": 2, "text": "a,b"}]


@pytest.mark.parametrize(
    ("flags", "said", "hint"),
    [
        ({"grid": ["lr"]}, "--grid lr has no '='", "for example: `--grid lr=0.1,0.01`"),
        ({"zip": ["lr"]}, "--zip lr has no '='", "for example: `--zip lr=0.1,0.01`"),
        ({"param": ["lr"]}, "--param lr has no '='", "for example: `--param lr=0.1`"),
        ({"param": ["a b=1"]}, "--param a b=1: invalid parameter name 'a b'", "for example: `--param lr=0.1`"),
        (
            {"param": ["n=99999999999999999999"]},
            "--param n is a number with more than 64 bits",
            "for example: `--param n=0.1",
        ),
        ({"grid": ["lr="]}, "--grid lr has no values", "use `--grid lr=0.1,0.01"),
        ({"grid": ["a=1,,2"]}, "--grid a has an empty value between two commas", 'use `--grid \'a=["a", ""]\''),
        ({"grid": ["a=9..1"]}, "--grid a has the range 9..1, which is empty", "use `--grid a=1..9"),
        ({"grid": ["a=1..x"]}, '--grid a has the range 1..x, but a range needs numbers; write ["1..x"] for text', ""),
        ({"zip": ["a=1..2..0"]}, "--zip a has the range 1..2..0, whose step is 0", "use `--zip a=1..2..1"),
        (
            {"grid": ["a=@gone"]},
            "--grid a names the file gone, which cannot be read: No such file",
            "use `--grid a=@values.txt",
        ),
        ({"grid": ["a=1..2000000"]}, "--grid a has 2,000,000 values; the maximum is 100,000", "give fewer"),
        ({"grid": ["a=1", "a=2"]}, "a is given twice with --grid", "give all values of a key in one"),
        (
            {"grid": ["a=1"], "param": ["a=2"]},
            "a is given with --grid and with --param",
            "give all values of a key in one",
        ),
        ({"grid": ["a=1"], "zip": ["a=2"]}, "a is given with --zip and with --grid", "give all values of a key in one"),
        ({"zip": ["a=1,2", "b=1,2,3"]}, "zipped keys need the same number of values, but b has 3 and a has 2", "use"),
        (
            {"grid": ["a=1..100", "b=1..100", "c=1..100"], "param": ["d=1"]},
            "the sweep has 1,000,000 combinations (a 100 x b 100 x c 100); the maximum is 100,000",
            "use fewer values",
        ),
        ({"grid": ["a=1"], "limit": 0}, "--limit 0 leaves no parameter sets", "for example: `--limit 10`"),
        (
            {"grid": ["a.b=1"], "param": ["a_b=1"]},
            "parameters 'a.b' and 'a_b' use the same variable $YURT_PARAM_A_B",
            "re",
        ),
    ],
)
def test_invalid_flags(flags: dict[str, Any], said: str, hint: str) -> None:
    with pytest.raises(UserError) as error:
        planned(**flags)
    assert error.value.message.startswith(said) and error.value.hint.startswith(hint), error.value.hint
    assert "\n" not in error.value.message and (error.value.exit_code, error.value.code) == (2, "usage")


def test_the_configuration_is_under_the_flags() -> None:
    config = written(
        "neptune.yaml",
        "project: p\nname: n\ndescription: d\ntags: [t]\nparameters: {lr: 1e-3, batch: 32}\n"
        "grid: {seed: 0..1, act: [relu, tanh]}\nzip: {w: [1, 2], h: [3, 4]}\n",
    )
    plan = planned(config=config)
    assert (plan.name, plan.project, plan.note, plan.tags, plan.sweep) == ("n", "p", "d", ["t"], True)
    assert len(plan.sets) == 8 and not plan.mrunner and not plan.warnings
    assert plan.sets[0] == {"lr": 0.001, "batch": 32, "w": 1, "h": 3, "seed": 0, "act": "relu"}
    over = planned(config=config, grid=["lr=0.1,0.2"], param=["act=gelu", "h=9"], name="m", note="e", tags=["u", "t"])
    assert (over.name, over.note, over.tags) == ("m", "e", ["t", "u"]) and not over.warnings
    assert list(over.sets) == [
        {"batch": 32, "w": w, "seed": seed, "lr": lr, "act": "gelu", "h": 9}
        for w in (1, 2)
        for seed in (0, 1)
        for lr in (0.1, 0.2)
    ]


def test_several_grids_each_with_the_flags() -> None:
    config = written("yurt.yaml", "grid:\n- {a: [1, 2]}\n- {b: [1], a: [2]}\n- {a: [2, 3]}\n")
    plan = planned(config=config, grid=["s=7,8"])
    assert list(plan.sets) == [
        *({"a": a, "s": s} for a in (1, 2) for s in (7, 8)),
        *({"b": 1, "a": 2, "s": s} for s in (7, 8)),
        *({"a": 3, "s": s} for s in (7, 8)),
    ]
    assert plan.warnings == [
        "2 parameter sets are given more than once and will run only once: a=2 s=7 (2 times); a=2 s=8 (2 times)"
    ]


def test_the_spec_is_over_the_configuration_and_under_the_flags() -> None:
    config = written("c.yaml", "name: c\ntags: [c]\nparameters: {lr: 1, batch: 32}\ngrid: {seed: [5, 6], x: [1, 2]}\n")
    spec = written("s.py", "spec = [dict(parameters=dict(lr=2, seed=s), name='s', tags=['s']) for s in (0, 1)]\n")
    plan = planned(config=config, spec=spec)
    assert (plan.name, plan.tags, plan.sweep, plan.mrunner) == ("s", ["c", "s"], True, False)
    assert list(plan.sets) == [{"batch": 32, "x": x, "lr": 2, "seed": seed} for x in (1, 2) for seed in (0, 1)]
    over = planned(config=config, spec=spec, param=["lr=3"], grid=["x=9"], name="f")
    assert over.name == "f" and not over.warnings
    assert list(over.sets) == [{"batch": 32, "seed": seed, "x": 9, "lr": 3} for seed in (0, 1)]


def test_a_key_that_only_some_experiments_set_stays_with_the_configuration() -> None:
    config = written("c.yaml", "parameters: {lr: 1}\n")
    spec = written("s.py", "spec = [{'a': 1}, {'a': 2, 'lr': 5}]\n")
    assert rows(config=config, spec=spec) == [{"lr": 1, "a": 1}, {"lr": 5, "a": 2}]


def test_a_flag_that_makes_experiments_equal() -> None:
    plan = planned(spec=written("s.py", "spec = [{'a': 1}, {'a': 2}, {'b': 1, 'a': 3}]\n"), param=["a=9"])
    assert list(plan.sets) == [{"a": 9}, {"b": 1, "a": 9}]
    assert plan.warnings == ["1 parameter set is given more than once and will run only once: a=9 (2 times)"]


def test_mrunner_spec() -> None:
    plan = planned(spec=FIXTURES / "grid_conf.py", tags=["mine"], limit=5)
    assert (plan.name, plan.project, plan.tags) == ("grid_conf", "nethack", ["grid_conf", "mine"])
    assert plan.script == ["sh", "-c", 'ldconfig /libs/; python3 grid.py "$@"', "sh"]
    assert plan.variables == {"OMP_NUM_THREADS": "1", "PYTHONPATH": ".:src"} and plan.exclude == ["checkpoint"]
    assert plan.mrunner and len(plan.sets) == 5 and len(plan.warnings) == 2
    assert [each["seed"] for each in plan.sets] == [0, 0, 1, 1, 2]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("spec = [{'parameters': {'a': i}, 'script': str(i)} for i in range(3)]\n", "scripts ('0' and '1')"),
        ("spec = [{'parameters': {'a': i}, 'env': {'A': i}} for i in range(3)]\n", "environments"),
        ("spec = [{'parameters': {'a': i}, 'name': str(i)} for i in range(3)]\n", "names ('0' and '1')"),
    ],
)
def test_experiments_of_several_kinds(text: str, said: str) -> None:
    with pytest.raises(UserError) as error:
        planned(spec=written("s.py", text))
    problem = f"the experiments in s.py have different {said}; all experiments of a sweep must share one"
    assert error.value.message == problem


def test_names_in_a_spec() -> None:
    with pytest.raises(UserError, match=r"^s\.py: invalid parameter name 'a b'"):
        planned(spec=written("s.py", "spec = [{'a b': 1}]\n"))
    with pytest.raises(UserError, match=r"'a-b' and 'a\.b' use the same variable"):
        planned(spec=written("s.py", "spec = [{'a.b': 1, 'a-b': 2}]\n"))
    assert rows(spec=written("s.py", "spec = [{'a.b': 1}, {'a-b': 2}]\n")) == [{"a.b": 1}, {"a-b": 2}]
    with pytest.raises(UserError, match="No closing quotation"):
        planned(spec=written("s.py", "spec = [{'parameters': {}, 'script': \"python 'x\"}]\n"))


def test_shuffled_and_limited() -> None:
    one = planned(grid=["a=1..50"], shuffle=True, seed=7, limit=10)
    assert (
        one.seed == 7
        and len(one.sets) == 10
        and exactly(one.sets) == exactly(rows(grid=["a=1..50"], shuffle=True, seed=7)[:10])
    )
    drawn = planned(grid=["a=1..50"], shuffle=True)
    assert drawn.seed is not None and drawn.seed != planned(grid=["a=1..50"], shuffle=True).seed
    assert exactly(planned(grid=["a=1..50"], shuffle=True, seed=drawn.seed).sets) == exactly(drawn.sets)
    assert planned(grid=["a=1..50"], seed=7).seed is None
    zero = sweep.combined(Flags(grid=["a=1..50"], shuffle=True), None, None, str)
    assert zero.seed == 0 and exactly(zero.sets) == exactly(planned(grid=["a=1..50"], shuffle=True, seed=0).sets)
    assert [each["a"] for each in planned(grid=["a=1,1,2"], limit=2).sets] == [1, 2], "repeats do not count"


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("python3 train.py --mrunner", ["python3", "train.py", "--mrunner"]),
        ("python 'a b.py' --x=1", ["python", "a b.py", "--x=1"]),
        (["python", "a b"], ["python", "a b"]),
        ("A=1 python x.py", ["sh", "-c", 'A=1 python x.py "$@"', "sh"]),
        ("", []),
    ],
)
def test_the_words_of_a_script(script: str | list[str], expected: list[str]) -> None:
    assert words(script) == expected


def test_a_line_for_a_shell_takes_arguments() -> None:
    told = subprocess.run([*words("true; printf '%s|' a"), "--k", "b c"], capture_output=True, text=True, check=True)
    assert told.stdout == "a|--k|b c|"
