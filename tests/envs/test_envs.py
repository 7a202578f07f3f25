"""Environments that yurt builds on the clusters of the lab: alpha has a package index, beta has no route out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.environments import ENVS
from tests.envs.conftest import make_sdist
from tests.lab.conftest import Ssh
from tests.laptop import Laptop
from tests.wheels import download
from yurt.lab import Lab
from yurt.testing.waiting import eventually

pytestmark = [pytest.mark.lab, pytest.mark.xdist_group("envs")]

PYPROJECT = """\
[project]
name = "study"
version = "1"
dependencies = ["six==1.17.0"]
[build-system]
requires = []
"""
SCRIPT = "import six, sys\nprint(six.__version__, sys.prefix)\n"


@pytest.fixture
def ssh(no_environments: Ssh) -> Ssh:
    return no_environments


@pytest.fixture(autouse=True)
def index(lab: Lab, ssh: Ssh) -> None:
    """Packages in alpha's index."""
    lab.index.add([*download("six==1.17.0", "3.11"), *download("numpy==1.26.4", "3.11")])


@pytest.fixture
def laptop(laptop: Laptop) -> Laptop:
    laptop.environment["YURT_CLOCKS"] = "slow=14 last_refresh=1 rest=0 lease=12"
    declare(laptop, "six==1.17.0\n")
    return laptop


def declare(laptop: Laptop, text: str) -> None:
    (laptop.project / "requirements.txt").write_text(text)
    (laptop.project / "train.py").write_text(SCRIPT)


def env_of(run: dict[str, Any]) -> str:
    folder: str = run["env"]["folder"]
    return folder


@pytest.mark.parametrize("context", ["alpha", "beta"])
@pytest.mark.slow("beta")
def test_the_first_run_builds_it_and_later_ones_use_it(laptop: Laptop, ssh: Ssh, context: str) -> None:
    declare(laptop, "six==1.17.0\nnumpy==1.26.4\n")
    (laptop.project / "train.py").write_text(SCRIPT + "import numpy\nprint(numpy.ones(3).sum())\n")
    first = laptop.run(context, "train.py")
    assert first["status"]["state"] == "queued" and first["status"]["building"], first
    assert first["run"]["env"]["packages"] == 2 and first["run"]["env"]["title"] == "requirements.txt"
    ended = laptop.ended(first["run"]["id"])
    assert ended["state"] == "completed" and not ended["building"], ended
    version, prefix, three = laptop("logs", first["run"]["id"]).out.split()
    assert (version, three) == ("1.17.0", "3.0") and prefix.startswith(f"{env_of(ended)}/env-")
    sweep = laptop.run(context, "--grid", "seed=1,2", "train.py")
    assert not sweep["status"]["building"]
    assert laptop.ended(sweep["run"]["id"])["state"] == "completed"
    assert laptop("logs", f"{sweep['run']['id']}.1").out.split() == [version, prefix, three]
    (view,) = laptop("env", "list", context, "--json").json["data"]
    assert (view["condition"], view["packages"], view["python"][:4]) == ("ready", 2, "3.11") and view["size"] > 1e6
    shown = laptop("--context", context, "env", "show", "--json").json["data"]
    assert [each["name"] for each in shown["packages"]] == ["numpy", "six"] and shown["changes"] == []
    assert ssh(context, f"ls {env_of(ended)}/builder {env_of(ended)}/beat 2>&1; ls {ENVS} | wc -l").split()[-1] == "1"


def test_only_for_python_without_an_environment_of_its_own(laptop: Laptop) -> None:
    (laptop.project / "job.sbatch").write_text("#!/bin/bash\n#SBATCH --time=5\npython3 -V\n")
    for words in (("--env", "none", "train.py"), ("job.sbatch",), ("sh", "-c", "true"), ("--venv", "~/v", "train.py")):
        planned = laptop("--context", "alpha", "--json", "run", "--dry-run", *words)
        assert planned.code == 0 and planned.json["data"]["run"]["env"] is None, planned
    here = laptop("--context", "local", "--json", "run", "--dry-run", "train.py")
    assert here.json["data"]["run"]["env"] is None
    (laptop.project / "pyproject.toml").write_text(
        '[project]\nname = "p"\nversion = "1"\ndependencies = ["six==1.17.0"]\n'
    )
    both = laptop("--context", "alpha", "--json", "run", "--dry-run", "train.py").json
    assert both["data"]["run"]["env"]["title"] == "pyproject.toml"
    assert any("not requirements.txt" in each for each in both["warnings"]), both


@pytest.mark.slow
def test_two_laptops_build_it_once(laptop: Laptop, second_laptop: Laptop, ssh: Ssh) -> None:
    declare(second_laptop, "six==1.17.0\n")
    with ThreadPoolExecutor() as pool:
        runs = list(pool.map(lambda each: each.run("alpha", "train.py")["run"], (laptop, second_laptop)))
    assert env_of(runs[0]) == env_of(runs[1])
    prefixes = set()
    for each, run in zip((laptop, second_laptop), runs, strict=True):
        assert each.ended(run["id"])["state"] == "completed"
        prefixes.add(each("logs", run["id"]).out.split()[1])
    assert len(prefixes) == 1
    assert len(ssh("alpha", f"ls -d {env_of(runs[0])}/env-*").split()) == 1


def test_a_builder_that_is_killed(laptop: Laptop, ssh: Ssh) -> None:
    run = laptop.run("alpha", "train.py")["run"]
    folder = env_of(run)
    ssh("alpha", f"until [ -e {folder}/beat ]; do sleep 0.05; done")
    ssh("alpha", f"for each in $(pgrep -f '{folder}/build[.]'); do kill -KILL -- -$each; done 2> /dev/null; true")
    assert ssh("alpha", f"ls {folder}/ready 2>&1 || true").endswith("No such file or directory")
    ssh("alpha", f"touch -d '1 hour ago' {folder}/beat")  # as after a minute without a heartbeat
    assert laptop.ended(run["id"])["state"] == "completed", "the next command has it built"
    assert len(ssh("alpha", f"ls -d {folder}/env-*").split()) == 1


@pytest.mark.slow
def test_a_purged_file_is_noticed(laptop: Laptop, ssh: Ssh) -> None:
    run = laptop.run("alpha", "--wait", "train.py")["run"]
    first = laptop("logs", run["id"]).out.split()[1]
    ssh("alpha", f"chmod -R u+w {first}; rm {first}/lib/python3*/site-packages/six.py")
    again = laptop.run("alpha", "train.py")
    assert again["status"]["building"] and laptop.ended(again["run"]["id"])["state"] == "completed"
    second = laptop("logs", again["run"]["id"]).out.split()[1]
    assert second != first and env_of(run) in second
    assert ssh("alpha", f"ls -d {first}").strip() == first, "a run may still be using it"


@pytest.fixture
def full(lab: Lab) -> Iterator[Callable[[], None]]:
    yield lambda: lab.faults.full("alpha:scratch")
    lab.faults.free("alpha:scratch")


@pytest.mark.slow
def test_a_full_disk(laptop: Laptop, lab: Lab, ssh: Ssh, full: Callable[[], None]) -> None:
    declare(laptop, "six==1.17.0\nnumpy==1.26.4\n")
    run = laptop.run("alpha", "train.py")["run"]
    ssh("alpha", f"until [ -e {env_of(run)}/beat ]; do sleep 0.05; done")
    full()
    ended = laptop.ended(run["id"])
    lab.faults.free("alpha:scratch")
    assert ended["state"] == "failed" and "its environment was not built" in ended["reason"], ended
    again = laptop.run("alpha", "train.py")["run"]
    assert laptop.ended(again["id"])["state"] == "completed"


@pytest.mark.slow
def test_failures_are_explained(laptop: Laptop, lab: Lab, tmp_path: Path) -> None:
    system = '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
    backend = "def build_wheel(*_): raise SystemExit('main.c:1:10: fatal error: zlib.h: No such file or directory')\n"
    lab.index.add([make_sdist(tmp_path, "yurt-unbuildable", pyproject__toml=system, backend__py=backend)])
    laptop.environment["PIP_FIND_LINKS"] = str(tmp_path)
    declare(laptop, "yurt-unbuildable\n")
    run = laptop.run("alpha", "train.py")["run"]
    ended = laptop.ended(run["id"])
    assert ended["state"] == "failed" and ended["reason"].startswith("its environment was not built: "), ended
    done = laptop("--context", "alpha", "env", "build")
    assert done.code == 5 and "the header file zlib.h is missing" in done.err and len(done.err.splitlines()) < 8, done
    declare(laptop, "no-such-package-of-anybody==1\n")
    refused = laptop("--context", "alpha", "run", "train.py")
    assert refused.code == 2 and "no-such-package-of-anybody" in refused.err, refused
    assert "or use `--env none` to run without this environment" in refused.err


@pytest.mark.slow
def test_a_run_that_is_cancelled_while_its_environment_is_built(laptop: Laptop, ssh: Ssh) -> None:
    run = laptop.run("alpha", "train.py")["run"]
    assert laptop("cancel", run["id"]).code == 0
    assert laptop.ended(run["id"])["state"] == "cancelled"
    eventually(lambda: ssh("alpha", f"ls {env_of(run)}/ready 2> /dev/null || true"))
    assert "yurt-" not in ssh("alpha", "squeue -h -t pending,running -o %j")
    assert laptop("--context", "alpha", "env", "remove", run["env"]["address"][:6], "--yes").code == 0
    assert laptop("env", "list", "alpha", "--json").json["data"] == []


@pytest.mark.slow
def test_a_package_in_a_folder_of_the_project_and_runs_that_the_user_holds(laptop: Laptop) -> None:
    (laptop.project / "yurt.yaml").write_text("name: several\n")
    laptop.project /= "study"
    for name, text in {
        "pyproject.toml": PYPROJECT,
        "src/study/__init__.py": "x = 5\n",
        "train.py": "import six, study\nprint(six.__version__, study.x)\n",
    }.items():
        (laptop.project / name).parent.mkdir(parents=True, exist_ok=True)
        (laptop.project / name).write_text(text)
    held = laptop.run("alpha", "--hold", "train.py")["run"]["id"]
    later = laptop.run("alpha", "train.py")["run"]["id"]
    assert laptop("hold", later).code == 0
    assert laptop("--context", "alpha", "env", "build").code == 0, "waits for the same build"
    assert [laptop.row(each)["state"] for each in (held, later)] == ["held", "held"]
    assert laptop("release", held, later).code == 0
    for each in (held, later):
        assert laptop.ended(each)["state"] == "completed" and laptop("logs", each).out == "1.17.0 5\n"


@pytest.mark.slow
def test_a_build_in_a_job(laptop: Laptop, ssh: Ssh) -> None:
    done = laptop("--context", "beta", "env", "build", "--on", "node", "--json")
    assert done.code == 0 and done.json["data"]["condition"] == "ready", done
    run = laptop.run("beta", "--wait", "train.py")
    assert run["status"]["state"] == "completed" and not run["status"]["building"]
    laptop("--context", "beta", "run", "--wait", "train.py")
    shown = laptop("diff", "--all", "--json", run["run"]["id"], "-").json["data"]["rows"]
    assert [(row["key"], row["left"]) for row in shown if row["part"] == "packages"] == [("six", "1.17.0")]
    assert "yurt-env-" not in ssh("beta", "squeue -h -t pending,running -o %j")
