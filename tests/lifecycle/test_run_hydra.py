"""Hydra applications get parameters as key=value, in runs and in sweeps."""

from __future__ import annotations

import pytest

from tests.user import User, said

SCRIPT = """\
import sys
{line}
print(*sys.argv[1:], sep="|")
"""


def written(user: User, line: str) -> None:
    (user.project / "train.py").write_text(SCRIPT.format(line=line))


def printed(user: User, *words: str) -> list[str]:
    """Return the arguments that each task prints."""
    done = user.quick("run", "--wait", "--json", *words)
    assert done.code == 0, done
    (run,) = [entry["run"] for entry in [done.json["data"]]]
    tasks = [f"{run['id']}.{number}" for number in range(run["tasks"])] if run["tasks"] else [run["id"]]
    return [user.quick("logs", task).out.strip() for task in tasks]


@pytest.mark.parametrize(
    ("line", "hydra"),
    [
        ("import os\nif 0:\n    import hydra", True),
        ("if 0:\n    from hydra import main", True),
        ("# @hydra.main(config_path='conf')", True),
        ("import argparse\nif 0:\n    import hydra", False),
        ("hydra = 1", False),
    ],
)
def test_a_script_that_imports_hydra(user: User, line: str, hydra: bool) -> None:
    written(user, line)
    assert printed(user, "--param", "lr=0.1", "train.py") == ["lr=0.1" if hydra else "--lr|0.1"]


def test_a_sweep(user: User) -> None:
    written(user, "# @hydra.main()")
    words = ["--grid", "opt.lr=0.1,0.01", "--param", "name=a", "train.py", "--", "model=big"]
    assert sorted(printed(user, *words)) == ["model=big|opt.lr=0.01|name=a", "model=big|opt.lr=0.1|name=a"]


def test_texts_that_need_quotes(user: User) -> None:
    written(user, "")
    words = ["--param", "x=it's, b", "--param", "y=[1,2]", "--param", "z=null"]
    assert printed(user, "--style", "hydra", *words, "train.py") == [r"x='it\'s, b'|y=[1,2]|z=null"]
    grid = ["--style", "hydra", "--grid", 'x=["a, b", "c"]', "train.py"]
    assert printed(user, *grid) == ["x='a, b'", "x='c'"]
    wrong = user.quick("run", "--style", "hydra", "--grid", 'x=["a, b", 1]', "train.py")
    assert said(wrong, 2).startswith("parameter 'x' mixes text with special characters, or null, with other values")


def test_the_style_given_by_the_user(user: User) -> None:
    assert printed(user, "--style", "hydra", "--grid", "lr=1", "sh", "-c", 'echo "$*"', "sh") == ["lr=1"]
    written(user, "# @hydra.main()")
    assert printed(user, "--style", "options", "--grid", "lr=1", "train.py") == ["--lr|1"]


def test_a_placeholder_in_the_command_is_not_passed_twice(user: User) -> None:
    written(user, "# @hydra.main()")
    assert printed(user, "--grid", "lr=1", "--grid", "s=2", "train.py", "+lr={lr}") == ["+lr=1|s=2"]


def test_overrides_are_recorded_as_parameters(user: User) -> None:
    written(user, "# @hydra.main()")
    overrides = ["learning_rate=0.7", "batch_size=64", "+opt.beta=[1,2]", "++name='it\\'s'", "text=a=b"]
    others = ["~db", "~db.user=x", "hydra.run.dir=out", "hydra/launcher=basic", "db/engine=a", "plain", "--multirun"]
    recorded = {"learning_rate": 0.7, "batch_size": 64, "opt.beta": [1, 2], "name": "it's", "text": "a=b"}
    done = user.quick("run", "--wait", "--json", "train.py", "--", *overrides, *others)
    run = done.json["data"]["run"]
    assert run["params"] == {**recorded, "multirun": True}
    found = user.quick("ps", "--cached", "--json", "--filter", "learning_rate=0.7", "--filter", "batch_size=64")
    assert [row["id"] for row in found.json["data"]] == [run["id"]]
    sweep = user.quick("run", "--wait", "--json", "--grid", "seed=1,2", "train.py", "--", *overrides).json["data"][
        "run"
    ]
    assert sweep["params"] == recorded
    shown = user.quick("show", f"{sweep['id']}.1", "--json").json["data"]["run"]
    assert shown["params"] == {**recorded, "seed": 2} and shown["command"] == ["train.py", *overrides, "seed=2"]


def test_overrides_with_the_same_variable_do_not_stop_the_run(user: User) -> None:
    written(user, "# @hydra.main()")
    done = user.quick("run", "--wait", "--json", "train.py", "--", "a.b=1", "a_b=2")
    assert done.code == 0 and done.json["data"]["run"]["params"] == {"a.b": 1}


def test_words_with_equals_of_another_script_are_no_parameters(user: User) -> None:
    written(user, "hydra = 1")
    assert user.quick("run", "--wait", "--json", "train.py", "--", "lr=1").json["data"]["run"]["params"] == {}
