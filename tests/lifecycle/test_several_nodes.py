"""Runs on two nodes of alpha with a real PyTorch (gloo, without GPUs) and a real MPI, as the recipes show them."""

from __future__ import annotations

import platform
import re
from pathlib import Path

import pytest

from tests.envs_venv import Install
from tests.laptop import Laptop

pytestmark = pytest.mark.lab

TORCH = "torch==2.9.1" if platform.machine() == "aarch64" else "torch==2.9.1+cpu"
"""PyPI has PyTorch without CUDA only for aarch64. Elsewhere pip finds it if its settings name another index."""

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "recipes.md").read_text()
SCRIPTS = dict(re.findall(r"^```py\n# (\w+\.py)\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE))
BY_SRUN, BY_TORCHRUN, MPI = (line.split() for line in re.findall(r"^yurt run (.*)$", PAGE, re.MULTILINE))


@pytest.fixture
def torch(laptop: Laptop, venv: Install) -> Laptop:
    """A laptop whose project uses PyTorch."""
    (laptop.project / "train.py").write_text(SCRIPTS["train.py"])
    # torch looks up the names of its peers. The name server of this machine does not answer the hosts of the lab.
    (laptop.project / "yurt.yaml").write_text(
        f"venv: {venv('torch', TORCH)}\n"
        "resources: {mem: 2G}\n"
        "variables: {RES_OPTIONS: 'timeout:1 attempts:1', OMP_NUM_THREADS: '1'}\n"
    )
    return laptop


def logs_of(laptop: Laptop, words: list[str]) -> str:
    run = laptop.run("alpha", *words)["run"]["id"]
    row = laptop.ended(run)
    logs = laptop.quick("logs", run).out
    assert row["state"] == "completed", (row, logs)
    return logs


def assert_met(logs: str, world: int) -> None:
    """Check that all ranks printed their sum, one half of them on one node, the others on another."""
    found = sorted(re.findall(r"^rank (\d+) of (\d+) on (\w+): (\d+)$", logs, re.MULTILINE))
    assert len(found) == world, logs
    hosts = [host for _rank, _size, host, _total in found]
    total = str(world * (world + 1) // 2)
    assert found == [(str(rank), str(world), hosts[rank], total) for rank in range(world)], logs
    first, second = {*hosts[: world // 2]}, {*hosts[world // 2 :]}
    assert len(first) == len(second) == 1 and first != second, logs


@pytest.mark.slow
def test_torch_distributed(torch: Laptop) -> None:
    assert_met(logs_of(torch, BY_SRUN), 4)


@pytest.mark.slow
def test_torchrun_needs_no_options_for_the_nodes(torch: Laptop) -> None:
    assert_met(logs_of(torch, BY_TORCHRUN), 4)


def test_mpi(laptop: Laptop, venv: Install) -> None:
    (laptop.project / "hello.py").write_text(SCRIPTS["hello.py"])
    (laptop.project / "yurt.yaml").write_text(f"venv: {venv('mpi', 'mpich==5.0.2', 'mpi4py==4.1.2')}\n")
    assert_met(logs_of(laptop, MPI), 4)


def test_a_failed_task_ends_the_others(laptop: Laptop) -> None:
    assert "`--var SLURM_KILL_BAD_EXIT=1`" in PAGE
    script = '[ "$RANK" = 1 ] || exec sleep 1000; exit 3'
    words = ["--nodes", "2", "--ntasks-per-node", "1", "--var", "SLURM_KILL_BAD_EXIT=1", "sh", "-c", script]
    row = laptop.ended(laptop.run("alpha", *words)["run"]["id"])
    assert row["state"] == "failed", row
