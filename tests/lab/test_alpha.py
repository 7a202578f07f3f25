"""alpha's features (accounting, GPUs, preemption, modules, storage), tested with real jobs."""

from __future__ import annotations

import pytest

from tests.lab.conftest import Ssh
from yurt.lab import Lab
from yurt.testing.waiting import eventually

pytestmark = pytest.mark.lab


def test_job_runs_with_its_own_folder_on_the_node(ssh: Ssh) -> None:
    job = ssh.submit("alpha", 'echo "$SLURM_TMPDIR"; stat -c "%U %a" "$SLURM_TMPDIR"', "--wait -o tmpdir.txt -w n2")
    assert ssh("alpha", "cat /lustre/scratch/alice/tmpdir.txt").split() == [f"/scratch/job-{job}", "alice", "700"]
    eventually(lambda: job not in ssh("alpha", "srun -w n2 ls /scratch"))


def test_gpu_job_gets_its_gpu(ssh: Ssh) -> None:
    ssh.submit("alpha", 'echo "gpu:$CUDA_VISIBLE_DEVICES $(hostname)"', "--wait -o gpu.txt --gres=gpu:a100:1")
    assert ssh("alpha", "cat /lustre/scratch/alice/gpu.txt") in ("gpu:0 n1", "gpu:0 n2", "gpu:1 n1", "gpu:1 n2")
    assert "a100" in ssh("alpha", "sinfo -h -o %G")


def test_job_over_its_memory_ends_out_of_memory(lab: Lab, ssh: Ssh) -> None:
    assert lab.instance.load_state().limits == "v1", "this machine has no cgroup v1"
    answer = ssh.ask(
        "alpha", "cd $HOME; sbatch --parsable --wait --mem=60 --wrap \"python3 -c 'bytearray(400 << 20)'\" -o o"
    )
    job = answer.out.strip()
    eventually(lambda: ssh("alpha", f"sacct -X -n -P -j {job} -o State") == "OUT_OF_MEMORY")


def test_accounting_answers(ssh: Ssh) -> None:
    job = ssh.submit("alpha", "exit 3", "-o /dev/null")
    eventually(lambda: ssh("alpha", f"sacct -X -n -P -j {job} -o State,ExitCode,Account") == "FAILED|3:0|lab")


def test_preemption_without_grace_requeues(ssh: Ssh) -> None:
    low = ssh.submit("alpha", "echo start >> low.txt; sleep 300", "-p scavenge -w n3 --exclusive -o /dev/null")
    eventually(lambda: ssh.state("alpha", low) == "RUNNING")
    high = ssh.submit("alpha", "true", "-p main -w n3 --exclusive -o /dev/null")
    eventually(lambda: ssh("alpha", f"scontrol show job {low} | grep -o Restarts=1 || true") == "Restarts=1")
    eventually(lambda: ssh.state("alpha", high) in ("RUNNING", "COMPLETED"))


def test_preemption_with_grace_sends_the_users_signal(ssh: Ssh) -> None:
    script = 'trap "date +%s >> signal.txt" USR1; date +%s >> signal.txt; for i in $(seq 600); do sleep 0.1; done'
    ssh("alpha", "rm -f /lustre/scratch/alice/signal.txt")
    ssh.submit("alpha", script, "-p spot -w n3 --exclusive --signal=B:USR1@1 -o /dev/null")
    eventually(lambda: ssh("alpha", "cat /lustre/scratch/alice/signal.txt 2> /dev/null || true"))
    high = ssh.submit("alpha", "true", "-p main -w n3 --exclusive -o /dev/null")
    eventually(lambda: len(ssh("alpha", "cat /lustre/scratch/alice/signal.txt").split()) >= 2)
    assert ssh.state("alpha", high) == "PENDING", "the low-priority job keeps the node during its grace time"


def test_partitions_and_their_limits(ssh: Ssh) -> None:
    rows = dict(line.split() for line in ssh("alpha", "sinfo -h -o '%P %l'").splitlines())
    assert rows == {"main*": "1-00:00:00", "short": "2:00", "scavenge": "1-00:00:00", "spot": "1-00:00:00"}
    over = ssh.ask("alpha", "sbatch -p short -t 10 --wrap true")
    assert over.code != 0 and "time limit" in over.err.lower()
    assert "GraceTime=20" in ssh("alpha", "scontrol show partition spot").replace(" ", "\n").splitlines()


def test_qos_takes_few_jobs(ssh: Ssh) -> None:
    for _each in range(4):
        ssh.submit("alpha", "true", "--hold --qos=few -o /dev/null")
    refused = ssh.ask("alpha", "sbatch --hold --qos=few --wrap true")
    assert refused.code != 0 and "QOSMaxSubmitJobPerUserLimit" in refused.err


def test_only_the_operator_extends_a_time_limit(ssh: Ssh) -> None:
    job = ssh.submit("alpha", "sleep 60", "-t 5 -o /dev/null")
    eventually(lambda: ssh.state("alpha", job) == "RUNNING")
    assert ssh.ask("alpha", f"scontrol update job {job} TimeLimit=30").code != 0
    ssh("alpha", f"scontrol update job {job} TimeLimit=30", user="oper")
    assert ssh("alpha", f"squeue -h -j {job} -o %l") == "30:00"


def test_modules_load_in_a_login_shell_only(ssh: Ssh) -> None:
    loaded = ssh(
        "alpha", "bash -lc 'module load cuda/12.1 python/3.11 && nvcc && command -v python && echo $CUDA_HOME'"
    )
    assert "release 12.1" in loaded and "/opt/python/3.11/bin/python" in loaded and "/opt/cuda/12.1" in loaded
    assert ssh.ask("alpha", "module avail").code != 0
    job = ssh.submit("alpha", ". /usr/share/modules/init/sh; module load cuda/11.8; nvcc", "--wait -o module.txt")
    assert "release 11.8" in ssh("alpha", "cat /lustre/scratch/alice/module.txt"), job


def test_storage_places(ssh: Ssh) -> None:
    assert ssh("alpha", "bash -lc 'echo $SCRATCH $PROJECT'") == "/lustre/scratch/alice /lustre/project/alice"
    ssh("alpha", "echo shared > /lustre/project/alice/note")
    assert ssh("alpha", "srun -w n1 cat /lustre/project/alice/note") == "shared"
    ssh("alpha", "srun -w n1 sh -c 'echo here > /scratch/only-n1'")
    assert ssh("alpha", "srun -w n1 cat /scratch/only-n1") == "here"
    assert ssh.ask("alpha", "srun -w n2 cat /scratch/only-n1").code != 0


def test_nodes_reach_out_through_the_login_host(ssh: Ssh) -> None:
    machine = ssh("alpha", "ip route show default").split()[2]
    route = ssh("alpha", "srun -w n1 ip route show default")
    assert route.startswith("default via 10.77.1.10")
    ask = f"import socket; s = socket.socket(); s.settimeout(5); print(s.connect_ex(('{machine}', 9)))"
    refused = "111"  # ECONNREFUSED: packets reach the machine, and nothing listens on that port
    assert ssh("alpha", f'srun -w n1 python3 -c "{ask}"') == refused
