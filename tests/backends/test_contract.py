"""Every kind of context passes the same suite."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.user import end_masters
from yurt.backends.base import Backend
from yurt.backends.slurm import options
from yurt.config import contexts
from yurt.contexts import connect
from yurt.lab import Lab
from yurt.lifecycle.plan.plan import plan as planning
from yurt.lifecycle.plan.request import Request
from yurt.model.run import Plan, RestartPolicy
from yurt.model.state import next_status
from yurt.testing.contract import BackendContract
from yurt.testing.pods import Pods
from yurt.testing.runs import (
    PATIENT,
    Planner,
    follow,
    observe,
    read,
    ref,
    submit,
    submitted,
)
from yurt.testing.shell_contract import ShellContract
from yurt.testing.waiting import eventually
from yurt.transport.base import Host


@pytest.fixture(scope="class")
def home(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A user's machine with the contexts of the lab, and a project as the working directory."""
    folder = tmp_path_factory.mktemp("home")
    runtime = Path(f"/tmp/yb-{os.getpid()}-{abs(hash(str(folder))) % 10**6}")
    (folder / "my project").mkdir()
    (folder / "config").mkdir()
    if request.cls.name in ("alpha", "beta"):
        lab: Lab = request.getfixturevalue("lab")
        shutil.copy(lab.instance.client.parents[3] / "config" / "contexts.yaml", folder / "config")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("YURT_CONFIG_HOME", str(folder / "config"))
        patch.setenv("YURT_DATA_HOME", str(folder / "data"))
        patch.setenv("YURT_RUNTIME_DIR", str(runtime))
        patch.chdir(folder / "my project")
        yield folder
    if runtime.exists():
        end_masters(runtime)


@pytest.fixture(scope="class")
def backend(request: pytest.FixtureRequest, home: Path) -> Backend:
    return Pods() if request.cls.name == "pods" else connect.named_backend(request.cls.name)


@pytest.fixture(scope="class")
def plan(request: pytest.FixtureRequest, home: Path) -> Planner:
    pods = request.cls.name == "pods"

    def made(*words: str, **more: Any) -> Plan:
        context = contexts.named("local" if pods else request.cls.name)
        found = planning(context, Request(words=words, **{"snapshot": False, **more})).plan
        return _for_pods(found) if pods else found

    return made


def _for_pods(plan: Plan) -> Plan:
    """Return the plan for a context whose paths do not exist on this machine."""
    folder = f"/nowhere/projects/{plan.run.project}"
    run = msgspec.structs.replace(plan.run, context="pods", folder=f"{folder}/runs/{plan.run.id}")
    return msgspec.structs.replace(plan, run=run, project_folder=folder)


class TestLocal(ShellContract):
    name = "local"


class TestPods(BackendContract):
    """A backend without ssh or a shared disk."""

    name = "pods"


class Cluster(ShellContract):
    def test_a_duplicate_job_changes_nothing(
        self, backend: Backend, host: Host, plan: Planner, clean: list[Plan]
    ) -> None:
        """After a lost reply of sbatch, a second job of the run is submitted while the first one runs."""
        made = plan("sh", "-c", PATIENT)
        clean.append(made)
        first = submit(backend, made).job
        eventually(lambda: read(backend, made, "out.log") == "begun\n")
        script = 'cd "$1" && shift && sbatch --parsable "$@" job.sh other'
        second = host.run(script, made.run.folder, *options.arguments(made)).text.strip()
        assert second != first
        eventually(lambda: host.run('squeue -h -j "$1" -o %T', second).text.strip() in ("", "COMPLETED"))
        seen = observe(backend, made)
        assert (seen.live, seen.job) == ("running", first)
        host.run(': > "$1/go"', made.run.folder)
        status = follow(backend, made)
        assert (status.state, status.job) == ("completed", first)
        assert read(backend, made, "out.log") == "begun\n" and read(backend, made, "gen.2") == ""

    def test_cancelled_by_scancel(self, backend: Backend, host: Host, plan: Planner, clean: list[Plan]) -> None:
        waits, runs = plan("true", hold=True), plan("sh", "-c", "echo begun; sleep 300")
        clean += [waits, runs]
        jobs = [submit(backend, each).job for each in (waits, runs)]
        eventually(lambda: read(backend, runs, "out.log"))
        seen = observe(backend, waits)
        assert (seen.live, seen.native) == ("held", "PENDING (JobHeldUser)")
        assert seen.reason == "held; release it with `yurt release`"
        host.run('scancel "$@"', *jobs)
        assert follow(backend, waits).state == "cancelled" and read(backend, waits, "winner") == ""
        status = follow(backend, runs)
        assert status.state == "cancelled"
        assert status.reason == "the site stopped it: preempted, or cancelled outside yurt"

    def test_held_and_released(self, backend: Backend, plan: Planner, clean: list[Plan]) -> None:
        made = plan("true", flags={"sbatch_options": {"begin": "now+1hour"}})
        clean.append(made)
        job = submit(backend, made).job
        backend.runs.hold([job])
        assert observe(backend, made).live == "held"
        backend.runs.release([job])
        assert observe(backend, made).live == "queued"

    def test_tasks_are_started_by_srun(self, backend: Backend, plan: Planner, clean: list[Plan]) -> None:
        made = plan("sh", "-c", 'echo "$SLURM_PROCID"; exit "$SLURM_PROCID"', flags={"ntasks": 3})
        clean.append(made)
        submit(backend, made)
        status = follow(backend, made)
        assert sorted(read(backend, made, "out.log").split()) == ["0", "1", "2"]
        assert (status.state, status.exit_code) == ("failed", 2)

    def test_job_names_of_users_are_ignored(
        self, backend: Backend, host: Host, plan: Planner, clean: list[Plan]
    ) -> None:
        """Jobs whose names contain squeue's separator, or look like yurt's names, are not taken for runs."""
        made = plan("true", hold=True)
        clean.append(made)
        mine = submit(backend, made).job
        names = [f"yurt-{made.run.id}|RUNNING", f"x|yurt-{made.run.id}", "yurt-", f"a\tyurt-{made.run.id}"]
        script = (
            'cd "$1" && shift && for name in "$@"; do sbatch --parsable -H -J "$name" -o /dev/null --wrap true; done'
        )
        others = host.run(script, made.run.folder, *names).text.split()
        assert len(others) == len(names)
        try:
            seen = observe(backend, made)
            assert (seen.job, seen.live) == (mine, "held")
            backend.runs.cancel(ref(made))
            left = host.run("squeue -h -u alice -o %i").text.split()
            assert set(others) <= set(left) and mine not in left
        finally:
            host.run('scancel "$@"', *others)


@pytest.mark.lab
class TestAlpha(Cluster):
    name = "alpha"

    def test_out_of_memory(self, backend: Backend, plan: Planner, clean: list[Plan]) -> None:
        made = plan("python3", "-c", "x = b'x' * (1 << 29)", flags={"resources": {"mem": "100M"}})
        clean.append(made)
        submit(backend, made)
        status = follow(backend, made)
        assert (status.state, status.reason) == ("out_of_memory", "it used more memory than its limit")

    @pytest.mark.slow
    def test_started_again_after_a_requeue(
        self, backend: Backend, host: Host, plan: Planner, clean: list[Plan]
    ) -> None:
        command = 'echo "start $YURT_RESTARTS"; [ "$YURT_RESTARTS" = 1 ] || sleep 300'
        made = msgspec.structs.replace(
            plan("sh", "-c", command, restart_policy=RestartPolicy(max_requeues=1)), lease=12
        )
        clean.append(made)
        job = submit(backend, made).job
        eventually(lambda: read(backend, made, "out.log"))
        assert host.run('scontrol requeue "$1"', job).code == 0
        before = next_status(submitted(), observe(backend, made), time.time())
        assert before.state in ("requeued", "running")
        status = follow(backend, made)
        assert (status.state, status.restarts, status.job) == ("completed", 1, job)
        assert read(backend, made, "out.log") == "start 0\nstart 1\n"


@pytest.mark.lab
class TestBeta(Cluster):
    name = "beta"

    test_over_its_time_limit = None  # type: ignore[assignment]  # alpha covers it; it takes a minute
