"""The main paths on the newest Slurm. `make test SLOW=1` runs whole suites on every version; see tools/test.py."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import yurt
from tests import site_python
from tests.lab.conftest import Ssh
from tests.laptop import Laptop
from tests.versions.conftest import NEWEST
from yurt.api.pickles import HERE
from yurt.clocks import clocks
from yurt.lab import Lab
from yurt.lab.manage import status_of

pytestmark = [pytest.mark.lab, pytest.mark.xdist_group("newest")]
BOTH = pytest.mark.parametrize("cluster", ["alpha", "beta"])
SECONDS = 120


def run(laptop: Laptop, cluster: str, *words: str) -> str:
    """Submit a run; return its id."""
    found: str = laptop.run(cluster, *words)["run"]["id"]
    return found


@pytest.fixture
def ssh(lab: Lab) -> Ssh:
    return Ssh(lab)


def test_the_version_of_the_clusters(lab: Lab, laptop: Laptop) -> None:
    assert {each.slurm.rpartition(".")[0] for each in status_of(lab).clusters} == {NEWEST}
    facts = laptop.quick("context", "probe", "alpha", "--json").json
    assert facts["data"]["slurm_version"].startswith(NEWEST) and facts["warnings"] == []


@BOTH
def test_how_runs_end(laptop: Laptop, ssh: Ssh, cluster: str) -> None:
    good = run(laptop, cluster, "--", "sh", "-c", "echo out; echo err >&2")
    bad = run(laptop, cluster, "--", "sh", "-c", "exit 42")
    outside = run(laptop, cluster, "--", "sleep", "300")
    tasks = run(laptop, cluster, "--grid", "n=1..3", "--", "sh", "-c", "echo $YURT_TASK_INDEX")
    laptop.starts(outside)
    ssh(cluster, f"scancel {laptop.row(outside)['job']}")
    assert laptop.ended(good)["state"] == "completed"
    assert [laptop.ended(bad)[key] for key in ("state", "exit_code")] == ["failed", 42]
    assert laptop.ended(outside)["state"] == "cancelled"
    assert laptop.ended(tasks)["state"] == "completed"
    assert set(laptop.quick("logs", good).out.splitlines()) >= {"out"}


def test_out_of_memory_and_a_requeue(laptop: Laptop, ssh: Ssh) -> None:
    twice = run(laptop, "alpha", "--requeue", "--", "sh", "-c", '[ "$YURT_RESTARTS" = 1 ] || sleep 300')
    laptop.starts(twice)
    ssh("alpha", f"scontrol requeue {laptop.row(twice)['job']}")
    large = run(laptop, "alpha", "--mem", "100M", "--", "python3", "-c", "x = b'x' * (1 << 29)")
    ended = laptop.ended(large)
    assert (ended["state"], ended["reason"]) == ("out_of_memory", "it used more memory than its limit")
    ended = laptop.ended(twice)
    assert (ended["state"], ended["restarts"]) == ("completed", 1)


def test_a_dependency_on_an_unknown_job(laptop: Laptop) -> None:
    """Slurm 22.05 accepts it; newer ones do not."""
    done = laptop.quick("--context", "alpha", "run", "--sbatch-option", "dependency=afterok:999999", "--", "true")
    assert done.code == 5 and "Slurm rejected the job: Job dependency problem" in done.err, done


@pytest.fixture
def user(laptop: Laptop, monkeypatch: pytest.MonkeyPatch) -> Iterator[Laptop]:
    """The user, in whose project this process is."""
    for name, value in laptop.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(laptop.project)
    clocks.cache_clear()
    there = laptop.quick("context", "probe", "alpha", "--json").json["data"]["pythons"]
    if any(f"{each}.".startswith(f"{HERE}.") for each in there):
        pytest.skip(f"needs another Python than {HERE}, which the root file system of this Slurm has, too")
    yield laptop
    clocks.cache_clear()


def of_a_script() -> Callable[[Any], Any]:
    """Return a function that is sent as bytecode."""

    def own(x: Any) -> Any:
        import sys

        return x, sys.version_info[:2]

    return own


def test_functions_of_another_python(user: Laptop) -> None:
    """A function of a script is refused before anything is submitted; one of a module runs."""
    with yurt.executor("alpha") as executor:
        assert executor.submit(math.sqrt, 16).result(SECONDS) == 4
        with pytest.raises(yurt.CallError) as caught:
            executor.submit(of_a_script(), 1).result(SECONDS)
    error = caught.value
    assert error.code == "call-python" and f'env="requirements.txt", env_python="{HERE}"' in error.hint, error
    assert [row["name"] for row in user.quick("ps", "--json").json["data"]].count("python:own") == 0


@pytest.fixture
def with_this_python(lab: Lab) -> Iterator[None]:
    """On alpha, the module python/3.11 has the Python of the tests."""
    if HERE != "3.11" or not site_python.PROGRAM.exists():
        pytest.skip("needs Python 3.11 of Debian, which the module of the lab is named after")
    with site_python.given(lab, "alpha", "/opt/python/3.11/bin/python3"):
        yield


def test_the_environment_that_the_error_offers(user: Laptop, with_this_python: None) -> None:
    """Functions of a script run in an environment with the Python of this machine."""
    (user.project / "requirements.txt").write_text("")
    with yurt.executor("alpha", env="requirements.txt", env_python=HERE) as executor:
        found = executor.submit(of_a_script(), 7).result(SECONDS)
    assert found == (7, sys.version_info[:2])
