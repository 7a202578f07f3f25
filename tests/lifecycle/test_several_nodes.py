"""Runs on two nodes of alpha with a real PyTorch (gloo, without GPUs) and a real MPI: the commands of the recipes."""

from __future__ import annotations

import platform
import re

import pytest

from tests.envs_venv import Install
from tests.laptop import Laptop

pytestmark = pytest.mark.lab

TORCH = "torch==2.9.1" if platform.machine() == "aarch64" else "torch==2.9.1+cpu"
"""PyPI has PyTorch without CUDA only for aarch64. Elsewhere pip finds it if its settings name another index."""

TRAIN = """\
import socket
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
total = torch.tensor([dist.get_rank() + 1])
dist.all_reduce(total)
print(f"rank {dist.get_rank()} of {dist.get_world_size()} on {socket.gethostname()}: {total.item()}", flush=True)
dist.destroy_process_group()
"""

MPI = """\
from mpi4py import MPI

world = MPI.COMM_WORLD
total = world.allreduce(world.rank + 1)
print(f"rank {world.rank} of {world.size} on {MPI.Get_processor_name()}: {total}", flush=True)
"""


@pytest.fixture
def torch(laptop: Laptop, venv: Install) -> Laptop:
    """A laptop whose project uses PyTorch."""
    (laptop.project / "train.py").write_text(TRAIN)
    # The lab has no name server. torch asks for the names of all peers, and would wait for each.
    (laptop.project / "yurt.yaml").write_text(
        f"venv: {venv('torch', TORCH)}\n"
        "resources: {mem: 2G}\n"
        "variables: {RES_OPTIONS: 'timeout:1 attempts:1', OMP_NUM_THREADS: '1'}\n"
    )
    return laptop


def assert_met(laptop: Laptop, world: int, *words: str) -> str:
    """Run a script and check that all ranks, on two nodes, know their sum; return the logs."""
    run = laptop.run("alpha", *words)["run"]["id"]
    row = laptop.ended(run)
    logs = laptop.quick("logs", run).out
    assert row["state"] == "completed", (row, logs)
    found = sorted(re.findall(r"^rank (\d+) of (\d+) on (\w+): (\d+)$", logs, re.MULTILINE))
    hosts = [host for _rank, _size, host, _sum in found]
    total = str(world * (world + 1) // 2)
    assert found == [(str(rank), str(world), hosts[rank], total) for rank in range(world)], logs
    first, second = hosts[: world // 2], hosts[world // 2 :]
    assert len({*first}) == len({*second}) == 1 and first != second, logs
    return logs


def test_torch_distributed(torch: Laptop) -> None:
    assert_met(torch, 2, "--nodes", "2", "--ntasks-per-node", "1", "train.py")


def test_torchrun_needs_no_options_for_the_nodes(torch: Laptop) -> None:
    assert_met(torch, 4, "--nodes", "2", "--ntasks-per-node", "1", "torchrun", "--nproc-per-node", "2", "train.py")


def test_options_of_torchrun_win(torch: Laptop) -> None:
    (torch.project / "train.py").write_text(f"import os\nprint('port', os.environ['MASTER_PORT'])\n{TRAIN}")
    command = ["python", "-m", "torch.distributed.run", "--master-port", "29511", "train.py"]
    logs = assert_met(torch, 2, "--nodes", "2", "--ntasks-per-node", "1", *command)
    assert re.findall(r"^port (\d+)$", logs, re.MULTILINE) == ["29511"] * 2, logs


def test_mpi(laptop: Laptop, venv: Install) -> None:
    (laptop.project / "hello.py").write_text(MPI)
    words = ["--venv", venv("mpi", "mpich==5.0.2", "mpi4py==4.1.2"), "--var", "SLURM_MPI_TYPE=pmi2"]
    assert_met(laptop, 4, "--nodes", "2", "--ntasks-per-node", "2", *words, "hello.py")
