"""`stage` in yurt.yaml and pyproject.toml."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from yurt.config import project, stage
from yurt.errors import UserError
from yurt.model.stage import StageRequest, merged, windows


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        (None, StageRequest()),
        ({"inputs": {"cifar": "project:cifar"}}, StageRequest(inputs={"cifar": "project:cifar"})),
        ({"outputs": ["a", "b.pt"], "time": "2m"}, StageRequest(outputs={"a": "", "b.pt": ""}, seconds=120)),
        ({"outputs": "a"}, StageRequest(outputs={"a": ""})),
        ({"outputs": {"a": "project:results", "b": None}}, StageRequest(outputs={"a": "project:results", "b": ""})),
    ],
)
def test_valid(body: Any, wanted: StageRequest) -> None:
    assert stage.read(body, ("stage",)) == (wanted, [])


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("cifar", "stage must be a mapping of inputs, outputs and time, not 'cifar'"),
        ({"input": {}}, "stage.input is not a key of stage; did you mean 'inputs'?"),
        ({"inputs": ["a"]}, "stage.inputs must be a mapping of names to places, not a list"),
        ({"inputs": {"a/b": "project:x"}}, "stage.inputs.a/b is not a valid name"),
        ({"inputs": {"..": "project:x"}}, "stage.inputs... is not a valid name"),
        ({"inputs": {"a": None}}, "stage.inputs.a must be a place, not an empty value"),
        ({"outputs": 3}, "stage.outputs must be a list of names, or a mapping of names to places, not '3'"),
        ({"outputs": [["a"]]}, "stage.outputs must be a list of names, not of a list"),
        ({"inputs": {"a": "/a"}, "outputs": ["a"]}, "stage.outputs.a is also the name of an input"),
        ({"time": "soon"}, "stage.time must be a positive duration such as 90s, 2m or 00:02:00, not 'soon'"),
    ],
)
def test_faults(body: Any, said: str) -> None:
    (fault,) = stage.read(body, ("stage",))[1]
    assert fault.sentence.startswith(said)


def test_in_files(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.yurt.stage]\noutputs = ["a"]\ntime = "90s"\n')
    found = project.find(tmp_path)
    assert found is not None and found.stage == StageRequest(outputs={"a": ""}, seconds=90)
    (tmp_path / "yurt.yaml").write_text("stage:\n  inputs: {a: project:a}\n")
    found = project.find(tmp_path)
    assert found is not None and found.stage == StageRequest(inputs={"a": "project:a"})
    (tmp_path / "yurt.yaml").write_text("stage:\n  inputs:\n    a b: project:a\n")
    with pytest.raises(UserError, match=r"yurt\.yaml:3"):
        project.find(tmp_path)


def test_flags_replace_names_of_the_project() -> None:
    ours = StageRequest(inputs={"a": "project:a", "b": "project:b"}, outputs={"c": ""}, seconds=90)
    flags = StageRequest(inputs={"a": "scratch:a"}, outputs={"b": ""})
    assert merged(flags, ours) == StageRequest(inputs={"a": "scratch:a"}, outputs={"c": "", "b": ""}, seconds=90)


@pytest.mark.parametrize(("kill_wait", "wanted"), [(30, (10, 25)), (5, (1, 3)), (60, (20, 55)), (1, (1, 1))])
def test_the_window_leaves_time_to_record_the_end(kill_wait: int, wanted: tuple[int, int]) -> None:
    assert windows(kill_wait) == wanted
