"""Functions of a script that a site's Python cannot run are refused before anything is submitted."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

import yurt
from yurt.api import pickles, pythons
from yurt.api.batch import Posted
from yurt.api.pickles import HERE
from yurt.backends.slurm import probe
from yurt.model.env import RunEnv
from yurt.model.facts import Facts
from yurt.model.run import Setup

OTHER = "3.6.8"


def posted(*, by_value: bool) -> list[Posted]:
    function = pickles.dump((lambda x: x) if by_value else len, "f")
    call: Any = None
    return [Posted(call, "f", function, pickles.dump(((), {}), "x"), {})]


def site(*versions: str) -> Facts:
    return Facts(probed_at=0, user="alice", host="login", pythons=list(versions))


class Planned(msgspec.Struct, frozen=True):
    env: RunEnv | None = None


class Made(msgspec.Struct, frozen=True):
    """The two fields of a plan that count."""

    run: Planned = Planned()
    setup: Setup = Setup()


def check(made: Made, facts: Facts | None, *, by_value: bool = True) -> None:
    plan: Any = made
    pythons.check("alpha", plan, posted(by_value=by_value), facts)


def test_another_version_is_refused() -> None:
    with pytest.raises(yurt.CallError) as caught:
        check(Made(), site(OTHER, "3.7.1"))
    error = caught.value
    assert error.code == "call-python" and error.message.endswith(
        f"Python {HERE}, and alpha has only Python 3.6 and 3.7"
    )
    assert f'env="requirements.txt", env_python="{HERE}"' in error.hint and "Python 3.6 or 3.7" in error.hint


@pytest.mark.parametrize(
    ("made", "facts"),
    [
        (Made(), site(OTHER, f"{HERE}.1")),
        (Made(), site()),
        (Made(), None),
        (Made(setup=Setup(modules=["python"])), site(OTHER)),
        (Made(setup=Setup(venv="/v")), site(OTHER)),
        (Made(setup=Setup(container="x.sif")), site(OTHER)),
    ],
    ids=["it has it", "not probed for it", "never probed", "modules", "venv", "container"],
)
def test_what_may_work_is_not_refused(made: Made, facts: Facts | None) -> None:
    check(made, facts)


def test_functions_of_modules_run_with_any_version() -> None:
    check(Made(), site(OTHER), by_value=False)


def test_an_environment_of_another_version() -> None:
    def env(python: str) -> Made:
        return Made(run=Planned(RunEnv(address="a", title="requirements.txt", folder="/e", python=python)))

    check(env(f"{HERE}.9"), site(OTHER))
    with pytest.raises(yurt.CallError) as caught:
        check(env(OTHER), site(OTHER))
    assert f'env_python="{HERE}"' in caught.value.hint


def test_versions_that_a_site_prints() -> None:
    lines = [
        "Python 3.11.2",
        "Python 3.9.18",
        "Python 3.11.2",
        "Python 2.7.5",
        "bash: x",
        "Python 3.13.0rc1",
        "Python 3.8",
    ]
    assert probe.read_pythons(lines) == ["3.11.2", "3.9.18", "3.13.0", "3.8"]
